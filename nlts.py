"""Neural-linear bandits with limited memory, line by line.

T. Zahavy and S. Mannor, "Neural Linear Bandits: Overcoming Catastrophic Forgetting through
Likelihood Matching", 2019. Read it beside the paper, top to bottom: equations have the numbers of
the PDF, lines of pseudo code the tags [1.1] to [1.6] (Algorithm 1), [2.1] to [2.24] (Algorithm 2).

paper                   here                   shape   what
b(t), a(t)              context, arm           (d,)    context (in Sec. 2 its own features), arm
phi(t)                  phi                    (g,)    features: the last hidden layer's activations
Phi; f; R^2             Phi; f; R2             (g, g); (g,); ()  sums of phi phi', phi r, r^2
Phi^0, B = Phi^0 + Phi  Phi0, precision        (g, g)  prior and posterior precision, times nu2
mu^0, mu-hat, mu-tilde  mu0, mu_hat, mu_tilde  (g,)    prior mean, posterior mean, sample
nu^2, a_i, b_i          nu2, a, b              ()      noise variance, its Inv-Gamma(a, b)
E_phi_old, E_phi        E_old, E_new           (n, g)  features of an arm's tuples in the buffer
Phi_old, mu_old         left                           posterior of those that left the buffer
s^2_j; (Phi^0)^-1       s2; S                  (n,); (g, g)  phi_old' Phi_old^-1 phi_old; covariance

Where this differs from print (docs/errata.md has the reasons, and the test that shows each):
1. nu2, not nu, is inverse gamma; a counts the plays of its own arm; b uses the whole precision.
2. Eq. 6 is matched to s^2, not s; of its many solutions ours is the smallest S, bounded from below.
3. A learning phase takes the buffer out of Phi, f, a and b and puts it back: nothing counts twice.
4. Phi0 starts as lam I with lam = 0.25 (Riquelme et al.), and each arm is first pulled twice.
5. A full buffer without a tuple of the played arm loses the first one of the fullest arm.
6. The last layer has no bias, so that D(b)_i = phi' weights_i. Adam trains, afresh in each phase.
"""
import copy
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs
from scipy.sparse.linalg import LinearOperator, cg
from torch import nn

LARGEST = 1e4                                                # in size, of a feature

@dataclass(frozen=True)
class Config:
    """Hyperparameters, and where each value comes from."""
    lam: float = 0.25         # Phi0 = lam I: Riquelme et al. (the pseudo code prints 1)
    a0: float = 6.0           # Inv-Gamma(a0, b0): the authors' code, as Riquelme et al.
    b0: float = 6.0
    L: int = 400              # steps between learning phases: Sec. 4.1
    P: int = 800              # mini-batches in a learning phase: Sec. 4.1
    batch: int = 64           # tuples in a mini-batch: the authors' code
    lr: float = 1e-3          # Adam's learning rate: ours
    initial_pulls: int = 2    # of each arm, round robin, before sampling: the authors' code

    def __post_init__(self):
        for name in ("lam", "a0", "b0", "lr"):
            _positive(name, getattr(self, name))
        for name, least in (("L", 1), ("P", 0), ("batch", 1), ("initial_pulls", 0)):
            _whole(name, getattr(self, name), least)

def _check(condition, message):
    if not condition:
        raise ValueError(message)

def _positive(name, value):
    positive = isinstance(value, (int, float, np.number)) and 0 < value < np.inf
    _check(positive, f"{name}: expected a number > 0, got {value!r}")

def _whole(name, value, least, most=np.inf):
    whole = isinstance(value, (int, np.integer)) and least <= value <= most
    _check(whole, f"{name}: expected a whole number from {least} to {most}, got {value!r}")

def _array(name, value, shape, most=1e50):
    """A float64 copy, or a ValueError that names the argument; None in `shape` is any length."""
    try:
        x = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise ValueError(f"{name}: expected numbers, got {value!r:.60}") from error
    fits = x.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, x.shape, strict=True))
    _check(fits, f"{name}: expected shape {shape}, got {x.shape}")
    _check((np.abs(x) <= most).all(), f"{name}: expected finite numbers up to {most:g}: scale it")
    return x

# Sec. 2: Bayesian linear regression and Algorithm 1 -----------------------------------------------
class BayesianLinearRegression:
    """One arm's posterior: nu2 ~ Inv-Gamma(a, b), mu_tilde | nu2 ~ N(mu_hat, nu2 precision^-1)."""

    def __init__(self, Phi0, mu0, a0, b0, n=0):
        _positive("a0", a0)
        _positive("b0", b0)
        self.mu0 = self.mu_hat = _array("mu0", mu0, (None,))
        self.Phi0 = self.precision = _array("Phi0", Phi0, (len(self.mu0), len(self.mu0)))
        self.chol, failed = dpotrf(self.precision)           # upper triangle: chol'chol = precision
        symmetric = np.allclose(self.Phi0, self.Phi0.T, 1e-6, 1e-9 * np.abs(self.Phi0).max())
        _check(symmetric and not failed, "Phi0: expected a symmetric positive definite matrix")
        self.Phi, self.f, self.R2 = np.zeros_like(self.Phi0), np.zeros_like(self.mu0), 0.0
        self.a, self.b, self.n = float(a0), float(b0), n     # n: tuples that it stands for

    def update(self, phi, r):
        """Eq. 2: observe a reward r under features phi (g,), or rewards (n,) under rows (n, g)."""
        E = _array("phi", phi if np.ndim(phi) == 2 else [phi], (None, len(self.mu0)), LARGEST)
        r = _array("r", np.atleast_1d(r), (len(E),))
        Phi, mu_before = self.Phi + E.T @ E, self.mu_hat
        chol, failed = dpotrf(self.Phi0 + Phi)
        _check(not failed, "phi: expected features that leave the precision positive definite")
        self.precision, self.chol = self.Phi0 + Phi, chol                                   # [1.5]
        self.Phi, self.f = Phi, self.f + E.T @ r                                           # [2.13]
        self.mu_hat = dpotrs(self.chol, self.Phi0 @ self.mu0 + self.f)[0]            # [1.6] [2.14]
        self.a += len(r) / 2                                                               # [2.15]
        self.R2 += r @ r                                                                   # [2.16]
        # equal to b0 + (R2 + mu0'Phi0 mu0 - mu_hat'precision mu_hat)/2, and it never decreases
        self.b += max((r - E @ mu_before) @ (r - E @ self.mu_hat) / 2, 0.0)                # [2.17]
        self.n += len(r)

    def without(self, E, r):
        """Bayes' rule backwards: the posterior of all tuples but the rows E (n, g), rewards r (n,).
        Its precision, mu_hat, a, b and n are Phi_old, mu_old, a_old, b_old and m."""
        Phi_old, n = self.precision - E.T @ E, len(r)
        mu_old = np.linalg.solve(Phi_old, self.Phi0 @ self.mu0 + self.f - E.T @ r)
        b_old = max(self.b - (r - E @ mu_old) @ (r - E @ self.mu_hat) / 2, 1e-16 * self.b)  # > 0
        return BayesianLinearRegression(Phi_old, mu_old, self.a - n / 2, b_old, self.n - n)

    def sample(self, rng, nu2=None):
        """Draw (nu2, mu_tilde) from the posterior, Eq. 1; a known noise variance may be given."""
        if nu2 is None:
            nu2 = self.b / rng.gamma(self.a)                 # [2.6] nu2 ~ Inv-Gamma(a, b)
        z, _ = dtrtrs(self.chol, rng.standard_normal(len(self.mu_hat)))      # N(0, precision^-1)
        return nu2, self.mu_hat + np.sqrt(nu2) * z           # [2.7] N(mu_hat, nu2 precision^-1)

    def variance(self, E):
        """s^2 = phi' precision^-1 phi of each row of E: the variance of phi'mu_tilde, over nu2."""
        return (np.linalg.solve(self.chol.T, np.transpose(E)) ** 2).sum(0)

    def predict(self, phi):
        """Mean, scale and degrees of freedom of the Student-t distribution of phi'mu_tilde."""
        phi = _array("phi", phi, (len(self.mu0),))
        return phi @ self.mu_hat, np.sqrt(self.b / self.a * self.variance([phi])[0]), 2 * self.a

class LinearTS:
    """Algorithm 1: as printed with v, lam=1, initial_pulls=0; with v=None it samples nu2, Eq. 2."""

    def __init__(self, dim, n_arms, v=None, seed=0, **hyper):
        _whole("dim", dim, 1)
        _whole("n_arms", n_arms, 1)
        _positive("v", 1 if v is None else v)
        config = self.config = Config(**hyper)
        self.dim, self.n_arms, self.v, self.t = dim, n_arms, v, 0
        self.rng = np.random.default_rng(seed)
        prior = config.lam * np.eye(dim), np.zeros(dim), config.a0, config.b0
        self.arms = [BayesianLinearRegression(*prior) for _ in range(n_arms)]               # [1.1]

    def act(self, context):
        """The arm to play in this context."""
        context = _array("context", context, (self.dim,), LARGEST)
        if self.t < self.config.initial_pulls * self.n_arms:
            return self.t % self.n_arms
        nu2 = None if self.v is None else self.v ** 2
        mu_tilde = [arm.sample(self.rng, nu2)[1] for arm in self.arms]                      # [1.2]
        return int(np.argmax(mu_tilde @ context))                                           # [1.3]

    def update(self, context, arm, reward):                                                 # [1.4]
        """Observe the reward that the arm paid in this context."""
        _whole("arm", arm, 0, self.n_arms - 1)
        context = _array("context", context, (self.dim,), LARGEST)
        self.arms[arm].update(context, _array("reward", reward, ()))
        self.t += 1

# Sec. 3, 1: representation ------------------------------------------------------------------------
class MLP(nn.Module):
    """The paper's network: one hidden layer of ReLUs. Its first weights are small and uniform."""

    def __init__(self, dim, n_arms, hidden=50, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        input = torch.empty(hidden, dim, dtype=torch.float64)                # (g, d)
        weights = torch.empty(n_arms, hidden, dtype=torch.float64)           # (N, g)
        self.input = nn.Parameter(input.uniform_(-dim ** -0.5, dim ** -0.5, generator=generator))
        self.bias = nn.Parameter(torch.zeros(hidden, dtype=torch.float64))   # (g,)
        self.weights = nn.Parameter(weights.uniform_(-0.3, 0.3, generator=generator))

    def features(self, x):                                                   # (n, d) -> (n, g)
        return torch.relu(nn.functional.linear(x, self.input, self.bias))

    def forward(self, x):                                                    # D(b): (n, N)
        return self.features(x) @ self.weights.T

def last_layer_activations(network, contexts):
    """LastLayerActivations(D(b)) of the rows of `contexts`: (n, d) -> (n, g), in float64."""
    try:
        with torch.no_grad():
            phi = network.features(_tensor(network, contexts)).double().numpy()
    except (RuntimeError, IndexError) as error:
        raise ValueError(f"context: expected what the network takes, but {error}") from error
    return _array("context's features (or lr, if it diverged)", phi, (len(phi), None), LARGEST)

def last_layer_weights(network):
    """LastLayerWeights(D), (N, g): `network.weights`, or those of its last nn.Linear."""
    linear = [module.weight for module in network.modules() if isinstance(module, nn.Linear)]
    weights = getattr(network, "weights", linear[-1] if linear else torch.empty(0, 0))
    return weights.detach().double().numpy().copy()

def _tensor(network, x):
    return torch.as_tensor(x, dtype=next(network.parameters()).dtype)

def train(network, buffer, config, rng):
    """Sec. 3, 1.1: minimize Eq. 3 on P mini-batches, drawn with replacement from the buffer."""
    contexts, arms, rewards = buffer.arrays()
    optimizer = torch.optim.Adam(network.parameters(), lr=config.lr, fused=True)
    network.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2 ** 31)))        # for dropout in a user's network
        for _ in range(config.P):
            rows = rng.integers(len(arms), size=config.batch)
            D = network(_tensor(network, contexts[rows]))                    # (batch, N)
            played = D[torch.arange(config.batch), torch.as_tensor(arms[rows])]
            loss = ((played - _tensor(network, rewards[rows])) ** 2).mean()  # Eq. 3
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    network.eval()

# Sec. 3, 3: memory buffer -------------------------------------------------------------------------
class ReplayBuffer:
    """E: the tuples (context, arm, reward), oldest first; at most `capacity`, None is no limit."""

    def __init__(self, capacity=None):
        _whole("capacity", 1 if capacity is None else capacity, 1)
        self.capacity, self.tuples = capacity, []

    def add(self, context, arm, reward):
        """Store a tuple. A full buffer loses the first tuple of the same arm; if there is none, the
        first one of the arm that has most tuples (of several such arms, the lowest)."""
        context = _array("context", context, self.tuples[0][0].shape if self.tuples else (None,))
        reward = float(_array("reward", reward, ()))
        _whole("arm", arm, 0)
        if len(self.tuples) == self.capacity:
            arms = [tuple_[1] for tuple_ in self.tuples]
            loser = arm if arm in arms else np.bincount(arms).argmax()
            del self.tuples[arms.index(loser)]                                             # [2.11]
        self.tuples.append((context, arm, reward))

    def arrays(self):
        """Contexts (n, d), arms (n,) and rewards (n,) of all tuples, oldest first."""
        _check(self.tuples, "buffer: expected a tuple, there is nothing to learn from")
        return tuple(np.array(column) for column in zip(*self.tuples, strict=True))

    def rows_of(self, arm):
        """E_i: contexts (n_i, d) and rewards (n_i,) of an arm's tuples, oldest first."""
        contexts, arms, rewards = self.arrays()
        return contexts[arms == arm], rewards[arms == arm]

# Sec. 3, 4: likelihood matching -------------------------------------------------------------------
def match_mean(E_old, E_new, mu_old):
    """Eq. 5: the mu0 with E_new mu0 = E_old mu_old, in least squares; of many the smallest."""
    return np.linalg.lstsq(E_new, E_old @ mu_old, rcond=None)[0]

def _without_units(E_new, s2):
    """E with sum ||phi||^4 = n (rows of 0 then go), what S / scale is to match, and the scale."""
    s2 = _array("s2", s2, (None,))
    E_new = _array("E_new", E_new, (len(s2), None))
    norm2 = (E_new ** 2).sum(1)
    known = (s2 >= 0).all() and min(norm2 @ s2, norm2 @ norm2) > 1e-200
    _check(known, "E_new, s2: expected s2 >= 0, and a row with features and an s2 > 0")
    scale, unit = (norm2 @ s2) / (norm2 @ norm2), np.sqrt(np.mean(norm2 ** 2))
    rows = norm2 > 0                                         # others say nothing of S
    return E_new[rows] / np.sqrt(unit), s2[rows] / (scale * unit), scale

def match_covariance_sdp(E_new, s2, ridge=0.0, floor=0.0, **solver):
    """Eq. 6 in CVXPY, S = (Phi0)^-1; with `ridge` and `floor` the problem of `match_covariance`."""
    import cvxpy as cp  # slow to import, and only needed here
    E, s2, scale = _without_units(E_new, s2)
    S = cp.Variable((E.shape[1], E.shape[1]), PSD=True) + floor * np.eye(E.shape[1])
    misfit = cp.sum(cp.multiply(E @ S, E), axis=1) - s2      # Trace(phi_j phi_j'S) - s_j^2, all j
    objective = cp.sum_squares(misfit) + ridge * cp.sum_squares(S)
    cp.Problem(cp.Minimize(objective)).solve(**solver)
    return scale * S.value

def match_covariance(E_new, s2, ridge=1e-3, floor=1e-2):
    """Eq. 6 made unique and bounded: the smallest S = (Phi0)^-1 that matches s^2. It minimizes

        1/2 sum_j (phi_j'S phi_j - s_j^2)^2 + rho/2 ||S||^2   subject to   S >= floor scale I,

    where rho = ridge mean_j ||phi_j||^4, and scale I is the multiple of I that matches best. Solved
    in the dual (Qi and Sun, 2006): y_j is the multiplier of the j-th misfit over rho, S(y) is Z =
    sum_j y_j phi_j phi_j' with eigenvalues raised to the floor. Newton's method minimizes a convex
    theta(y) = rho/2 ||y||^2 - s2'y + (||Z||^2 - ||Z - S(y)||^2)/2 until half its gradient's square,
    a bound on how far S(y) is above the least objective, is below 1e-7 of the second term."""
    _check(1e-6 <= ridge < 1 and 1e-6 <= floor < 1, "ridge, floor: expected both from 1e-6 to 1")
    E, s2, scale = _without_units(E_new, s2)                 # in these units rho = ridge
    V, n = np.linalg.qr(E.T)[0], len(E)                      # outside of V, S is at the floor
    E = E @ V                                                # (n, k), k = min(n, g)

    def evaluate(y):
        w, Q = np.linalg.eigh((E.T * y) @ E)                 # Z = Q diag(w) Q'
        x, p = w.clip(floor), E @ Q                          # S(y) = Q diag(x) Q'
        theta = ridge / 2 * y @ y - s2 @ y + x @ (2 * w - x) / 2
        return theta, p ** 2 @ x + ridge * y - s2, w, x, Q, p                # and its gradient

    def hessian(d):
        """H_jk = rho 1[j=k] + sum_ab W_ab p_ja p_jb p_ka p_kb, with p and W of the loop below."""
        return ridge * d + (p @ (W * ((p.T * d) @ p)) * p).sum(1)

    def inverse(rows, v):
        """Of H with v_a v_b for W_ab: rho I + (rows diag(v) rows')^2, squared entry by entry."""
        chol, _ = dpotrf((rows * v @ rows.T) ** 2 + ridge * np.eye(n))
        return LinearOperator((n, n), lambda d: dpotrs(chol, d)[0], dtype=float)

    H, M = LinearOperator((n, n), hessian, dtype=float), inverse(E, 1.0)     # M ~ H^-1, for cg
    y = M @ s2                                               # the solution if none is raised
    theta, gradient, w, x, Q, p = evaluate(y)
    for k in range(1000):
        if gradient @ gradient <= 1e-7 * ridge * x @ x + 1e-30 * s2 @ s2:    # or rounding
            K = V @ (Q * np.sqrt(scale * (x - floor)))
            return K @ K.T + scale * floor * np.eye(len(V))
        far = np.abs(w - floor) + 1e-300
        W = np.add.outer(x - floor, x - floor) / np.add.outer(far, far)  # (x_a-x_b)/(w_a-w_b)
        M = inverse(p, (x > floor) @ W / max(sum(x > floor), 1)) if k == 2 else M    # W has settled
        d, _ = cg(H, -gradient, rtol=0.05, M=M)  # inexact Newton step
        slope, step = gradient @ d, 1.0
        while (new := evaluate(y + step * d))[0] > theta + 1e-4 * step * slope + 1e-12 * abs(theta):
            step /= 2
        y = y + step * d
        theta, gradient, w, x, Q, p = new
    raise ValueError(f"ridge: expected a larger one, {ridge} is out of reach for this E_new and s2")

def likelihood_matching(left, E_old, E_new, weights, lam, match=match_covariance):
    """The paper's prior: (Phi0, mu0) of each arm i under the new features. Every prior is given the
    posteriors left[i] of what left the buffer, under the old features; E_old[i] and E_new[i], the
    (n_i, g) features of what is in it; the last layer's weights (N, g); lam of the first prior."""
    priors = []
    for i, old in enumerate(left):
        s2 = old.variance(E_old[i])                          # phi_old' (Phi_old)^-1 phi_old
        Phi0 = old.precision                                 # stays where there is nothing to match
        if (s2 @ E_new[i] ** 2).any():
            Phi0 = np.linalg.inv(match(E_new[i], s2))                                      # [2.22]
        priors.append((Phi0, weights[i]))                                                  # [2.23]
    return priors

def mean_prior(left, E_old, E_new, weights, lam):
    """The paper's ablation "mu prior": Phi0 starts anew in each phase, mu0 is the last layer."""
    return [(lam * np.eye(len(w)), w) for w in weights]

def no_prior(left, E_old, E_new, weights, lam):
    """The paper's ablation "no prior": Phi0 and mu0 start anew in each phase; a and b go on."""
    return [(lam * np.eye(len(w)), np.zeros(len(w))) for w in weights]

def invertible_prior(E_old, E_new, mu_old, Phi_old):
    """Appendix C: the (Phi0, mu0) that is exact if features are linear in b and E is invertible."""
    A = np.linalg.lstsq(E_old, E_new, rcond=None)[0].T       # phi = A phi_old: E_new = E_old A'
    mu0 = match_mean(E_old, E_new, mu_old)                   # Eq. 7: E_new mu0 = E_old mu_old
    return A @ Phi_old @ A.T, mu0                            # Eq. 8: E_new S E_new' as before

# Appendix A: Algorithm 2 --------------------------------------------------------------------------
class NeuralLinearTS:
    """Algorithm 2: limited memory neural-linear Thompson sampling. With memory=None all tuples stay
    and no prior is asked (Riquelme et al., "Deep Bayesian Bandits Showdown", 2018)."""

    def __init__(self, network, n_arms, memory=None, prior=likelihood_matching, train=train,
                 L=Config.L, P=Config.P, seed=0, **hyper):
        _whole("n_arms", n_arms, 1)
        weights = last_layer_weights(network)
        fits = hasattr(network, "features") and len(weights) == n_arms
        _check(fits, "network: expected features(x) and weights (n_arms, g), as nlts.MLP has")
        _whole("memory", n_arms if memory is None else memory, n_arms)
        asked = callable(prior) and callable(train) and (memory or prior is likelihood_matching)
        _check(asked, "prior, train: expected functions, and no prior where memory=None keeps all")
        self.config = Config(L=L, P=P, **hyper)
        self.prior, self.train = no_prior if memory is None else prior, train
        self.n_arms, self.t, self.rng = n_arms, 0, np.random.default_rng(seed)
        self.arms = [BayesianLinearRegression(*first, self.config.a0, self.config.b0)       # [2.1]
                     for first in no_prior(None, None, None, weights, self.config.lam)]
        self.buffer, self.network = ReplayBuffer(memory), network.eval()                    # [2.2]

    def phi(self, context):
        """The features (g,) of a context (d,)."""
        context = _array("context", context, self.buffer.tuples[0][0].shape if self.t else (None,))
        phi = last_layer_activations(self.network, context[None])                           # [2.3]
        if self.t % self.config.L == 0:                      # at first, and after each phase
            D = self.network(_tensor(self.network, context[None])).detach().double().numpy()
            weights, tiny = last_layer_weights(self.network).T, 1e-6 * (1 + np.abs(phi).sum())
            same = len(weights) == len(phi.T) and np.allclose(D, phi @ weights, 1e-4, tiny)
            _check(same, "network: expected forward(x) = features(x) @ weights.T, without a bias")
        return phi[0]

    def act(self, context):
        """The arm to play in this context."""
        phi = self.phi(context)                                                             # [2.4]
        if self.t < self.config.initial_pulls * self.n_arms:
            return self.t % self.n_arms
        mu_tilde = [arm.sample(self.rng)[1] for arm in self.arms]                           # [2.5]
        return int(np.argmax(mu_tilde @ phi))                                               # [2.8]

    def update(self, context, arm, reward):                                                 # [2.9]
        """Observe the reward that the arm paid in this context, Eq. 4; every L steps, learn."""
        phi, reward = self.phi(context), _array("reward", reward, ())
        _whole("arm", arm, 0, self.n_arms - 1)
        self.buffer.add(context, arm, reward)                                              # [2.10]
        self.arms[arm].update(phi, reward)                                                 # [2.12]
        self.t += 1
        if self.t % self.config.L == 0:
            self.learn()

    def learn(self):
        """Take the buffer out, carry over what is left, put the buffer back; or change nothing."""
        contexts, r = zip(*[self.buffer.rows_of(i) for i in range(self.n_arms)], strict=True)
        network, rng = copy.deepcopy((self.network, self.rng))
        E_old = [last_layer_activations(network, rows) for rows in contexts]               # [2.18]
        left = [self.arms[i].without(E_old[i], r[i]) for i in range(self.n_arms)]
        self.train(network, self.buffer, self.config, rng)                                 # [2.19]
        E_new = [last_layer_activations(network, rows) for rows in contexts]        # [2.20] [2.21]
        priors = self.prior(left, E_old, E_new, last_layer_weights(network), self.config.lam)
        _check(len(priors) == self.n_arms, "prior: expected a (Phi0, mu0) for each arm")
        arms = []
        for i, (Phi0, mu0) in enumerate(priors):
            arms.append(BayesianLinearRegression(Phi0, mu0, left[i].a, left[i].b, left[i].n))
            arms[i].update(E_new[i], r[i])                                                 # [2.24]
        self.network.load_state_dict(network.state_dict())
        self.arms, self.rng = arms, rng

# Sec. 4.3: sentiment analysis from text -----------------------------------------------------------
class TextCNN(nn.Module):
    """Words' embeddings, convolutions, the maximum over time, a linear layer; b is token ids."""

    def __init__(self, vocabulary, n_arms, size=128, widths=(3, 4, 5), hidden=50, seed=0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):              # the caller's random state stays
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(vocabulary, size)
            self.convolutions = nn.ModuleList(nn.Conv1d(size, size, width) for width in widths)
            self.dense = nn.Linear(size * len(widths), hidden)
            self.weights = nn.Parameter(torch.empty(n_arms, hidden).uniform_(-0.3, 0.3))

    def features(self, x):                                                   # (n, words) -> (n, g)
        x = self.embedding(x.long()).transpose(1, 2)                         # (n, size, words)
        pooled = [torch.relu(convolution(x)).amax(2) for convolution in self.convolutions]
        return self.dense(torch.cat(pooled, 1))

    def forward(self, x):                                                    # D(b): (n, N)
        return self.features(x) @ self.weights.T

class EpsilonGreedy(NeuralLinearTS):
    """The baseline: the arm with the highest D(b)_i, with probability epsilon any. No sampling."""

    def __init__(self, network, n_arms, epsilon, **options):
        super().__init__(network, n_arms, **options)
        self.epsilon = float(_array("epsilon", epsilon, ()))
        _check(0 <= self.epsilon <= 1, f"epsilon: expected a number from 0 to 1, got {epsilon!r}")

    def act(self, context):
        """The arm to play in this context."""
        phi = self.phi(context)
        if self.t < self.config.initial_pulls * self.n_arms:
            return self.t % self.n_arms
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(self.n_arms))
        return int(np.argmax(last_layer_weights(self.network) @ phi))
