"""Neural-linear bandits with limited memory, line by line.

T. Zahavy and S. Mannor, "Neural Linear Bandits: Overcoming Catastrophic Forgetting through
Likelihood Matching", 2019. Read this beside the paper, top to bottom. Equations have the numbers of
the PDF. Lines of pseudo code have no numbers in print; ours are [1.1] to [1.6] for Algorithm 1 and
[2.1] to [2.24] for Algorithm 2: `LinearTS` and `NeuralLinearTS` print the pseudo code with them.
x' is the transpose of x; S >= c I says that no eigenvalue of S is below c; ||S||^2 sums squares.

paper          here                     shape     what
d, g, N                                           sizes: of contexts, of features, number of arms
b(t)           context                  (d,)      context; in Sec. 2 it is its own features
a(t)           arm                      ()        the arm that is played
r_t            reward, r                ()        the reward that it pays
               arms[i]                            the posterior of arm i
phi'mu-tilde   scores                   (N,)      sampled reward of each arm
phi(t)         phi                      (g,)      features: activations of the last hidden layer
Phi            Phi                      (g, g)    sum of phi phi'
f              f                        (g,)      sum of phi r
R^2            R2                       ()        sum of r^2
Phi^0, B^0     Phi0                     (g, g)    prior precision, times nu2
Phi^0+Phi, B   precision                (g, g)    posterior precision, times nu2
               root                     (g, g)    root root' = precision^-1, covariance / nu2
mu^0           mu0                      (g,)      prior mean
mu-hat         mu_hat                   (g,)      posterior mean
mu-tilde       mu_tilde                 (g,)      sample of the posterior
nu^2           nu2                      ()        variance of the noise
v              v                        ()        Algorithm 1: standard deviation of known noise
a_i            a                        ()        nu2 ~ Inv-Gamma(a, b)
b_i            b                        ()        (b_i is not the context b(t))
D              network                            D(b)_i estimates the reward of arm i
               weights                  (N, g)    LastLayerWeights(D): D(b) = weights phi
E              buffer                             the replay buffer
               E, r                     (n, g)    features, and rewards (n,), of several tuples
E^i_phi_old    E_old[i]                 (n_i, g)  old features of arm i's tuples in the buffer
E^i_phi        E_new[i]                 (n_i, g)  their new features
Phi_old        forgotten[i].precision   (g, g)    posterior precision of tuples that left the buffer
mu_old         forgotten[i].mu_hat      (g,)      their posterior mean
m              forgotten[i].n           ()        their number
s^2_j          s2                       (n_i,)    phi_old' Phi_old^-1 phi_old
(Phi^0)^-1     S                        (g, g)    prior covariance / nu2

Where this differs from print (docs/errata.md has the reasons, and the test that shows each):
1. nu2, not nu, is inverse gamma; a counts the plays of its own arm; b uses Phi0 + Phi.
2. Eq. 6 is matched to s^2, not s. As a rule it has infinitely many solutions, and print chooses
   none; ours is the smallest S, bounded from below.
3. A learning phase takes the buffer out of Phi, f, a and b and puts it back: nothing counts twice.
4. Phi0 starts as lam I with lam = 0.25 (Riquelme et al.), and each arm is first pulled twice.
5. A full buffer without a tuple of the played arm loses the first one of the fullest arm.
6. The last layer has no bias, so that D(b)_i = phi' weights_i. Adam starts anew in each phase.
"""
import copy
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn


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
    initial_pulls: int = 2    # of each arm, before sampling: the authors' code

    def __post_init__(self):
        _check_config(self)


# Sec. 2: Bayesian linear regression and Algorithm 1 -----------------------------------------------

class BayesianLinearRegression:
    """One arm's posterior: nu2 ~ Inv-Gamma(a, b), mu_tilde | nu2 ~ N(mu_hat, nu2 precision^-1).

    It keeps a root of the covariance, root root' = precision^-1. With it everything is a product:
    precision^-1 x = root (root' x), and root z has the covariance root root' if z is N(0, I).
    """

    def __init__(self, Phi0, mu0, a0, b0, n=0):
        _check_positive("a0", a0)
        _check_positive("b0", b0)
        self.mu0 = _array("mu0", mu0, (None,))
        self.Phi0 = _array("Phi0", Phi0, (len(self.mu0), len(self.mu0)))
        self.Phi = np.zeros_like(self.Phi0)
        self.f = np.zeros_like(self.mu0)
        self.R2 = 0.0
        self.a = float(a0)
        self.b = float(b0)
        self.n = n                                           # tuples that it stands for
        self.root = _checked_root(self.Phi0, NO_PRECISION)
        self.mu_hat = self.mu0.copy()

    @property
    def precision(self):
        """B in Sec. 2: the posterior precision, times nu2."""
        return self.Phi0 + self.Phi

    def update(self, phi, r):
        """Eq. 2: observe a reward r under features phi (g,), or rewards (n,) under rows (n, g)."""
        E, r = _checked_rows(self, phi, r)
        Phi = self.Phi + E.T @ E                                                     # [1.5] [2.13]
        if len(E) == 1:
            root = root_with_tuple(self.root, E[0])
        else:
            root = _checked_root(self.Phi0 + Phi, NEARLY_SINGULAR)
        # nothing fails below this line
        error_before = r - E @ self.mu_hat
        self.Phi = Phi
        self.f = self.f + E.T @ r                                                    # [1.6] [2.13]
        self.root = root
        self.mu_hat = root @ (root.T @ (self.Phi0 @ self.mu0 + self.f))              # [1.6] [2.14]
        self.a = self.a + len(r) / 2                                                       # [2.15]
        # [2.16], for readers of the paper: the next line has no need of it
        self.R2 = self.R2 + r @ r
        # In print: b = b0 + (R2 + mu0'Phi0 mu0 - mu_hat'precision mu_hat) / 2. The same without
        # differences of large numbers; it is never negative but for rounding.
        error_after = r - E @ self.mu_hat
        self.b = self.b + max(error_before @ error_after, 0.0) / 2                         # [2.17]
        self.n = self.n + len(r)

    def without(self, E, r):
        """Bayes' rule backwards: the posterior of all tuples except the rows E (n, g), rewards r.

        If the rows are those of the buffer, its precision, mu_hat, a, b and n are Phi_old, mu_old,
        a_old, b_old and m of what was forgotten. Each line is one of `update`, solved backwards.
        """
        Phi_old = self.precision - E.T @ E
        root = _checked_root(Phi_old, NEARLY_SINGULAR)
        mu_old = root @ (root.T @ (self.Phi0 @ self.mu0 + self.f - E.T @ r))
        a_old = self.a - len(r) / 2
        error_before = r - E @ mu_old
        error_after = r - E @ self.mu_hat
        b_old = self.b - error_before @ error_after / 2
        b_old = max(b_old, 1e-16 * self.b)                   # positive, whatever the rounding
        m = self.n - len(r)
        return BayesianLinearRegression(Phi_old, mu_old, a_old, b_old, m)

    def sample(self, nu2, rng):
        """Draw mu_tilde from N(mu_hat, nu2 precision^-1), Eq. 1."""
        _check(nu2 >= 0, f"nu2: expected a variance >= 0, got {nu2!r}")
        z = rng.standard_normal(len(self.mu_hat))
        return self.mu_hat + np.sqrt(nu2) * (self.root @ z)                           # [1.2] [2.7]

    def s2(self, E):
        """Sec. 3, 4: s^2 = phi' precision^-1 phi of each row phi of E (n, g). It is the variance of
        the estimate phi'mu_tilde, divided by nu2: how little is known there."""
        return ((E @ self.root) ** 2).sum(1)


def root_of_inverse(precision):
    """The root with root root' = precision^-1: with precision = G G', G triangular, it is G'^-1."""
    return np.linalg.inv(np.linalg.cholesky(precision)).T


def root_with_tuple(root, phi):
    """The root once phi phi' is added to the precision, in g^2 operations (Potter, 1963): the
    covariance is then root (I - uu'/k) root', and I - uu'/(k + sqrt(k)) is a root of I - uu'/k."""
    u = root.T @ phi
    k = 1 + u @ u
    return root - (root @ u)[:, None] * (u / (k + np.sqrt(k)))


def inverse_gamma_noise(arms, config, rng):
    """The paper's noise: nu2_i ~ Inv-Gamma(a_i, b_i) of each arm i."""
    return [arm.b / rng.gamma(arm.a) for arm in arms]        # b/Gamma(a) is Inv-Gamma(a, b)  [2.6]


def known_noise(arms, config, rng, v):
    """The noise of Algorithm 1 as printed: nu2 = v^2 for all arms."""
    return [v ** 2] * len(arms)


def first_prior(g, config):
    """What is known of an arm before its first reward: Phi0 = lam I, mu0 = 0, a0 and b0."""
    return BayesianLinearRegression(config.lam * np.eye(g), np.zeros(g), config.a0, config.b0)


class LinearTS:
    """Algorithm 1: Thompson sampling for linear contextual bandits.

    [1.1]  for all i: B = I, mu_hat = 0, f = 0           here: agent = LinearTS(dim, n_arms)
           for t = 1, 2, ...
    [1.2]      for all i: sample mu_tilde from           here: arm = agent.act(context)
               N(mu_hat, v^2 B^-1)
    [1.3]      play a(t) = argmax b(t)'mu_tilde
    [1.4]      observe reward r                          here: agent.update(context, arm, reward)
    [1.5]      B = B + b(t) b(t)'
    [1.6]      f = f + b(t) r, mu_hat = B^-1 f

    As printed it is LinearTS(dim, n_arms, v, lam=1, initial_pulls=0). Without v the variance of the
    noise is sampled, as in Eq. 2 and in the experiments: noise(arms, config, rng) is a nu2 per arm.
    Algorithm 2 is the same loop on other features: its tags stand beside those of Algorithm 1.
    An agent is not thread-safe: guard it with a lock.
    """

    def __init__(self, dim, n_arms, v=None, noise=inverse_gamma_noise, seed=0, **settings):
        _check_linear(dim, n_arms, v, noise)
        self.config = Config(**settings)
        self.n_arms = n_arms
        self.noise = noise if v is None else partial(known_noise, v=v)
        self.rng = np.random.default_rng(seed)
        self.arms = [first_prior(dim, self.config) for _ in range(n_arms)]            # [1.1] [2.1]
        self.chosen = np.zeros(n_arms, int)                  # how often `act` chose each arm
        self.t = 0                                           # rewards observed

    def phi(self, context):
        """The features (g,) of a context: in Sec. 2 the context itself."""
        return _array("context", context, self.arms[0].mu0.shape, LARGEST)

    def scores(self, context):
        """The sampled reward phi'mu_tilde of each arm, (N,). Each call samples anew."""
        phi = self.phi(context)                                                             # [2.4]
        nu2 = self.noise(self.arms, self.config, self.rng)
        # [1.2] [2.5] for all arms
        mu_tilde = [arm.sample(nu2_i, self.rng) for arm, nu2_i in zip(self.arms, nu2, strict=True)]
        return mu_tilde @ phi

    def act(self, context):
        """The arm to play in this context: at first each arm in turn, `initial_pulls` times. A pull
        counts when it is chosen, or when its reward comes, whichever is more."""
        pulls = np.maximum(self.chosen, [arm.n for arm in self.arms])
        if pulls.min() < self.config.initial_pulls:
            self.phi(context)                                # a bad context is refused here, too
            arm = int(pulls.argmin())
        else:
            arm = int(np.argmax(self.scores(context)))                                # [1.3] [2.8]
        self.chosen[arm] += 1
        return arm

    def update(self, context, arm, reward):                                                 # [1.4]
        """Observe the reward that the arm paid in this context."""
        phi, reward = _checked_tuple(self, context, arm, reward)
        self.arms[arm].update(phi, reward)                                            # [1.5] [1.6]
        self.t += 1


# Sec. 3, 1: representation ------------------------------------------------------------------------

class MLP(nn.Module):
    """The paper's network: one hidden layer, of ReLUs as in the authors' code, in float64.

    First weights are uniform within 1/sqrt(dim), in the last layer within 0.3. The hidden biases
    start at 0, as in the authors' code.
    """

    def __init__(self, dim, n_arms, hidden=50, seed=0):
        for name, value in (("dim", dim), ("n_arms", n_arms), ("hidden", hidden)):
            _check_int(name, value, 1)
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        input = torch.empty(hidden, dim, dtype=torch.float64)                # (g, d)
        weights = torch.empty(n_arms, hidden, dtype=torch.float64)           # (N, g)
        self.input = nn.Parameter(input.uniform_(-dim ** -0.5, dim ** -0.5, generator=generator))
        self.bias = nn.Parameter(torch.zeros(hidden, dtype=torch.float64))   # (g,)
        self.weights = nn.Parameter(weights.uniform_(-0.3, 0.3, generator=generator))

    def features(self, x):
        """phi of each row of x: (n, d) -> (n, g)."""
        return torch.relu(nn.functional.linear(x, self.input, self.bias))

    def forward(self, x):
        """D(b), the estimated reward of each arm: (n, d) -> (n, N)."""
        return self.features(x) @ self.weights.T


def last_layer_activations(network, contexts):
    """LastLayerActivations(D(b)) of the rows of `contexts`: (n, d) -> (n, g), in float64."""
    try:
        with torch.no_grad():
            phi = network.features(_tensor(network, contexts))
    except (RuntimeError, IndexError) as error:
        raise ValueError(f"context: expected what the network takes, but {error}") from error
    return _array("context's features (or lr, if it diverged)", phi, (len(contexts), None), LARGEST)


def last_layer_weights(network):
    """LastLayerWeights(D), (N, g), in float64."""
    return network.weights.detach().double().numpy().copy()


def train(network, buffer, config, rng):
    """Sec. 3, 1.1: minimize Eq. 3 on P mini-batches, drawn with replacement from the buffer."""
    contexts, played, rewards = buffer.arrays()
    optimizer = torch.optim.Adam(network.parameters(), lr=config.lr, fused=True)
    network.train()
    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2 ** 31)))        # for dropout
        for _ in range(config.P):
            rows = rng.integers(len(played), size=config.batch)
            D = network(_tensor(network, contexts[rows]))                    # (batch, N)
            D_played = D[torch.arange(config.batch), torch.as_tensor(played[rows])]
            loss = ((D_played - _tensor(network, rewards[rows])) ** 2).mean()        # Eq. 3
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    network.eval()


# Sec. 3, 3: memory buffer -------------------------------------------------------------------------

class ReplayBuffer:
    """E: the tuples (context, arm, reward), oldest first; at most `capacity`, None is no limit."""

    def __init__(self, capacity):
        _check_int("capacity", 1 if capacity is None else capacity, 1)
        self.capacity = capacity
        self.tuples = []

    def add(self, context, arm, reward):
        """Store a tuple. A full buffer loses the first tuple of the same arm; if there is none, the
        first one of the arm that has most tuples (of several such arms, the lowest)."""
        context = _array("context", context, self.tuples[0][0].shape if self.tuples else (None,))
        _check_int("arm", arm, 0)
        reward = float(_array("reward", reward, ()))
        if len(self.tuples) == self.capacity:
            played = [a for _, a, _ in self.tuples]
            loser = arm if arm in played else np.bincount(played).argmax()
            del self.tuples[played.index(loser)]                                           # [2.11]
        self.tuples.append((context, arm, reward))

    def arrays(self):
        """Contexts (n, d), played arms (n,) and rewards (n,) of all tuples, oldest first."""
        _check(self.tuples, "buffer: expected a tuple, there is nothing to learn from")
        contexts, played, rewards = zip(*self.tuples, strict=True)
        return np.array(contexts), np.array(played), np.array(rewards)


# Sec. 3, 4: likelihood matching -------------------------------------------------------------------

def match_mean(E_old, E_new, mu_old):
    """Eq. 5: the mu0 with E_new mu0 = E_old mu_old, in least squares; of many the smallest."""
    return np.linalg.lstsq(E_new, E_old @ mu_old, rcond=None)[0]


def match_covariance_sdp(E_new, s2, rho=0.0, least=0.0, **solver):
    """Eq. 6 as printed, in CVXPY: S = (Phi0)^-1, or None where the solver returns nothing. With rho
    and least it is the problem of `match_covariance`."""
    import cvxpy as cp  # slow to import, and only needed here
    g = E_new.shape[1]
    S = cp.Variable((g, g), PSD=True) + least * np.eye(g)
    misfit = cp.sum(cp.multiply(E_new @ S, E_new), axis=1) - s2      # Trace(phi_j phi_j'S) - s_j^2
    objective = cp.sum_squares(misfit) + rho * cp.sum_squares(S)
    cp.Problem(cp.Minimize(objective)).solve(**solver)
    return S.value


def match_covariance(E_new, s2, ridge=1e-3, floor=1e-2):
    """Eq. 6 made unique and bounded: the smallest S = (Phi0)^-1 that matches s^2. It minimizes

        1/2 sum_j (phi_j'S phi_j - s_j^2)^2 + rho/2 ||S||^2   subject to   S >= least I.

    Without the bound this is ridge regression: the derivative by S is zero for
        S = Z = sum_j y_j phi_j phi_j'   with   rho y_j = s_j^2 - phi_j'S phi_j.
    With it, S is Z with its eigenvalues raised: Z = Q diag(w) Q' gives S = Q diag(x) Q' with
    x = max(w, least). What is left are n equations for n numbers y_j, one per tuple,
        gradient_j = phi_j'S phi_j + rho y_j - s_j^2 = 0,
    solved by Newton's method (Qi and Sun, 2006): they say that y minimizes a convex function theta.
    """
    E, s2 = _checked_matching(E_new, s2, ridge, floor)
    norm2 = (E ** 2).sum(1)                                              # ||phi_j||^2
    # units do not matter: least is relative to c of the c I that fits s^2 best, rho to ||phi||^4
    rho = ridge * np.mean(norm2 ** 2)
    least = floor * (norm2 @ s2) / (norm2 @ norm2)
    n = len(E)
    y = np.linalg.solve((E @ E.T) ** 2 + rho * np.eye(n), s2)            # optimal without the bound
    theta, w, x, Q = _dual(E, s2, rho, least, y)
    for _ in range(1000):
        p = E @ Q                                                        # features in the basis Q
        gradient = p ** 2 @ x + rho * y - s2                             # (n,)
        # small enough beside rho ||S||^2, or as small as rounding allows
        if gradient @ gradient <= 1e-9 * rho * x @ x + 1e-30 * s2 @ s2:
            root = Q * np.sqrt(x)
            return root @ root.T                                         # S = Q diag(x) Q'
        # H = derivative of gradient by y: H_jk = rho 1[j = k] + sum_ab share_ab p_ja p_jb p_ka p_kb
        # where share_ab is 1 if neither w_a nor w_b is raised, 0 if both are, else as below
        free = w > least                                                 # not raised
        share = (w[free, None] - least) / (w[free, None] - w[~free])     # a is free, b is raised
        # M[j, ab] = sqrt(2 share_ab) p_ja p_jb; the 2 counts (a, b) and (b, a)
        M = np.sqrt(2 * share) * p[:, free, None] * p[:, None, ~free]
        M = M.reshape(n, -1)
        H = rho * np.eye(n) + (p[:, free] @ p[:, free].T) ** 2 + M @ M.T
        step = -np.linalg.solve(H, gradient)
        new = _dual(E, s2, rho, least, y + step)
        while new[0] > theta + 1e-12 * abs(theta):                       # theta grew: too far
            step = step / 2
            new = _dual(E, s2, rho, least, y + step)
        y = y + step
        theta, w, x, Q = new
    raise ValueError(f"ridge: expected a larger one, {ridge} is out of reach for this E_new and s2")


def _dual(E, s2, rho, least, y):
    """theta(y) of `match_covariance`, the eigenvalues w of Z, raised x, and eigenvectors Q."""
    w, Q = np.linalg.eigh((E.T * y) @ E)                                 # of Z
    x = np.maximum(w, least)
    theta = rho / 2 * y @ y - s2 @ y + x @ (2 * w - x) / 2
    return theta, w, x, Q


def likelihood_matching(forgotten, E_old, E_new, weights, lam, match=match_covariance):
    """The paper's prior: (Phi0, mu0) of each arm i under the new features.

    Every prior is given the same: the posteriors forgotten[i] of what left the buffer, under the
    old features; E_old[i] and E_new[i], the (n_i, g) features of what is in it; the last layer's
    weights (N, g); and lam of the first prior. `match` solves Eq. 6.
    """
    priors = []
    for i, old in enumerate(forgotten):
        s2 = old.s2(E_old[i])                                # phi_old' (Phi_old)^-1 phi_old
        informative = (s2 > 0) & E_new[i].any(1)
        if informative.any():
            Phi0 = np.linalg.inv(match(E_new[i], s2))                                      # [2.22]
        else:
            Phi0 = old.precision                             # there is nothing to match
        mu0 = weights[i]                                                                   # [2.23]
        priors.append((Phi0, mu0))
    return priors


def mean_prior(forgotten, E_old, E_new, weights, lam):
    """The paper's ablation "mu prior": Phi0 starts anew in each phase, mu0 is the last layer."""
    return [(lam * np.eye(len(w)), w) for w in weights]


def no_prior(forgotten, E_old, E_new, weights, lam):
    """The paper's ablation "no prior": Phi0 and mu0 start anew in each phase. The noise, a and b,
    is kept, as with all priors."""
    return [(lam * np.eye(len(w)), np.zeros(len(w))) for w in weights]


def invertible_prior(forgotten, E_old, E_new, weights, lam):
    """Appendix C: the prior that is exact if features are linear in b, and E_old[i] and E_new[i]
    have rank g for each arm i."""
    priors = []
    for i, old in enumerate(forgotten):
        _check_rank(i, E_old[i], E_new[i])
        A = np.linalg.lstsq(E_old[i], E_new[i], rcond=None)[0].T     # phi = A phi_old, in each row
        mu0 = match_mean(E_old[i], E_new[i], old.mu_hat)             # Eq. 7
        Phi0 = A @ old.precision @ A.T                               # Eq. 8, solved for S^-1
        priors.append((Phi0, mu0))
    return priors


# Appendix A: Algorithm 2 --------------------------------------------------------------------------

class NeuralLinearTS(LinearTS):
    """Algorithm 2: limited memory neural-linear Thompson sampling. As printed, but with phi r for
    phi'r in [2.13] and [2.24], and Phi0 and Phi0 + Phi for B^0 and B in [2.17]. The header of this
    file says what else is read differently: nu in [2.6] is nu2 in the code.

    [2.1]   for all i: Phi0 = I, mu_hat = mu0 = 0, Phi = 0, here: agent = NeuralLinearTS(network,
            f = 0, a = a0, b = b0                                     n_arms, memory)
    [2.2]   initialize replay buffer E and DNN D
    [2.3]   define phi(t) = LastLayerActivations(D(b(t)))   here: agent.phi(context)
            for t = 1, 2, ...
    [2.4]       observe b(t), evaluate phi(t)               here: arm = agent.act(context)
    [2.5]       posterior sampling, for all i:
    [2.6]           nu ~ Inv-Gamma(a, b)                    here: inverse_gamma_noise
    [2.7]           mu_tilde ~ N(mu_hat, nu^2 (Phi0 + Phi)^-1)
    [2.8]       play a(t) = argmax phi(t)'mu_tilde
    [2.9]       observe reward r                            here: agent.update(context, arm, reward)
    [2.10]      store {b(t), a(t), r} in E
    [2.11]      if E is full: remove the first tuple with a = a(t)
    [2.12]      Bayesian linear regression update:
    [2.13]          Phi = Phi + phi phi', f = f + phi r
    [2.14]          mu_hat = (Phi0 + Phi)^-1 (Phi0 mu0 + f)
    [2.15]          a = a + 1/2
    [2.16]          R^2 = R^2 + r^2
    [2.17]          b = b0 + (R^2 + mu0'Phi0 mu0 - mu_hat'(Phi0 + Phi)mu_hat) / 2
    [2.18]      if t mod L = 0: for all i: old features     here: agent.learn(), which update calls
                on the buffer, E_old
    [2.19]          train DNN for P steps
    [2.20]          compute priors for new features, for all i:
    [2.21]              new features on the buffer, E_new
    [2.22]              solve for Phi0 using Eq. 6          here: likelihood_matching
    [2.23]              mu0 = LastLayerWeights(D)_i
    [2.24]              Phi = sum of phi phi', f = sum of phi r, over the buffer

    memory: tuples in the buffer, of all arms together (the paper: 100 per arm). None keeps all:
    that is full memory (Riquelme et al., "Deep Bayesian Bandits Showdown", 2018), which forgets
    nothing and takes no `prior`. A prior, train and noise are functions such as the defaults. The
    network is trained in place; it has `features`, `weights` and `forward`, as `MLP` has.
    """

    def __init__(self, network, n_arms, memory, prior=likelihood_matching, train=train,
                 noise=inverse_gamma_noise, seed=0, **settings):
        _check_neural(network, n_arms, memory, prior, train)
        g = last_layer_weights(network).shape[1]
        super().__init__(g, n_arms, noise=noise, seed=seed, **settings)                     # [2.1]
        self.network = network.eval()
        self.buffer = ReplayBuffer(memory)                                                  # [2.2]
        self.prior = no_prior if memory is None else prior   # nothing forgotten: the first prior
        self.train = train

    def phi(self, context):
        """The features (g,) of a context (d,)."""
        context = _array("context", context, (None,))
        return last_layer_activations(self.network, context[None])[0]                       # [2.3]

    def update(self, context, arm, reward):                                                 # [2.9]
        """Observe the reward that the arm paid in this context, Eq. 4; every L steps, learn. If
        learning fails, the tuple counts, and `learn` makes up for the learning phase."""
        phi, reward = _checked_tuple(self, context, arm, reward)
        self.buffer.add(context, arm, reward)                                              # [2.10]
        self.arms[arm].update(phi, reward)                                                 # [2.12]
        self.t += 1
        if self.t % self.config.L == 0:
            self.learn()

    def learn(self):
        """A learning phase, in three moves: take the buffer out of the posterior, carry what was
        forgotten over to the new features, put the buffer back in."""
        contexts, played, rewards = self.buffer.arrays()
        own = [played == i for i in range(self.n_arms)]      # which tuples are arm i's
        r = [rewards[own_i] for own_i in own]
        # copies, assigned last: if learning fails, nothing has changed
        network = copy.deepcopy(self.network)
        rng = copy.deepcopy(self.rng)
        _check_forward(network, contexts)

        # take the buffer out
        phi_old = last_layer_activations(network, contexts)
        E_old = [phi_old[own_i] for own_i in own]                                          # [2.18]
        forgotten = [arm.without(E, r_i) for arm, E, r_i in zip(self.arms, E_old, r, strict=True)]

        # carry over what was forgotten
        self.train(network, self.buffer, self.config, rng)                                 # [2.19]
        phi_new = last_layer_activations(network, contexts)
        E_new = [phi_new[own_i] for own_i in own]                                          # [2.21]
        weights = last_layer_weights(network)
        priors = self.prior(forgotten, E_old, E_new, weights, self.config.lam)             # [2.20]

        # put the buffer back in
        arms = []
        for old, (Phi0, mu0), E, r_i in zip(forgotten, priors, E_new, r, strict=True):
            arm = BayesianLinearRegression(Phi0, mu0, old.a, old.b, old.n)
            arm.update(E, r_i)                                                             # [2.24]
            arms.append(arm)

        self.network.load_state_dict(network.state_dict())
        self.rng = rng
        self.arms = arms


# Sec. 4.3: sentiment analysis from text -----------------------------------------------------------

class TextCNN(nn.Module):
    """The network of Sec. 4.3: words' embeddings, convolutions, the maximum over time, a linear
    layer; b is token ids. First weights, dropout and sizes are those of the program that the paper
    links (github.com/dennybritz/cnn-text-classification-tf); the linear layer is the paper's.
    """

    def __init__(self, vocabulary, n_arms, size=128, widths=(3, 4, 5), hidden=50, seed=0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):              # the caller's random state stays
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(vocabulary, size)
            self.convolutions = nn.ModuleList(nn.Conv1d(size, size, width) for width in widths)
            self.dense = nn.Linear(size * len(widths), hidden)
            self.weights = nn.Parameter(torch.empty(n_arms, hidden).uniform_(-0.3, 0.3))
            nn.init.uniform_(self.embedding.weight, -1, 1)
            for convolution in self.convolutions:
                nn.init.trunc_normal_(convolution.weight, std=0.1, a=-0.2, b=0.2)
                nn.init.constant_(convolution.bias, 0.1)

    def features(self, x):
        """phi of each row of token ids: (n, words) -> (n, g). Dropout only while training."""
        x = self.embedding(x.long()).transpose(1, 2)                         # (n, size, words)
        pooled = [torch.relu(convolution(x)).amax(2) for convolution in self.convolutions]
        pooled = nn.functional.dropout(torch.cat(pooled, 1), 0.5, self.training)
        return self.dense(pooled)

    def forward(self, x):
        """D(b), the estimated reward of each arm: (n, words) -> (n, N)."""
        return self.features(x) @ self.weights.T


class EpsilonGreedy(NeuralLinearTS):
    """The baseline: the arm with the highest D(b)_i; with probability epsilon an arm at random. It
    keeps posteriors, as NeuralLinearTS does, but neither asks them nor carries them over."""

    def __init__(self, network, n_arms, memory, epsilon, train=train, seed=0, **settings):
        prior = likelihood_matching if memory is None else no_prior
        super().__init__(network, n_arms, memory, prior, train, seed=seed, **settings)
        self.epsilon = float(_array("epsilon", epsilon, ()))
        _check(0 <= self.epsilon <= 1, f"epsilon: expected a number from 0 to 1, got {epsilon!r}")

    def scores(self, context):
        """D(b), (N,); with probability epsilon, N uniform numbers."""
        phi = self.phi(context)
        if self.rng.random() < self.epsilon:
            return self.rng.random(self.n_arms)
        return last_layer_weights(self.network) @ phi


# Plumbing: conversions and checks. Nothing of the paper is below this line ------------------------

LARGEST = 1e4                                                # in size, of a feature
NO_PRECISION = "Phi0: expected a symmetric positive definite matrix"
NEARLY_SINGULAR = "lam: expected a larger one, the precision is nearly singular"


def _tensor(network, x):
    return torch.as_tensor(x, dtype=next(network.parameters()).dtype)


def _check(condition, message):
    if not condition:
        raise ValueError(message)


def _check_positive(name, value):
    if not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        raise ValueError(f"{name}: expected a number > 0, got {value!r}")


def _check_int(name, value, least, most=np.inf):
    if not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise ValueError(f"{name}: expected a whole number from {least} to {most}, got {value!r}")


def _array(name, value, shape, most=1e50):
    """A float64 copy, or a ValueError that names the argument; None in `shape` is any length."""
    try:
        x = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name}: expected numbers, got {value!r:.60}") from error
    if x.dtype.kind not in "biuf":                           # bool, int, float
        raise ValueError(f"{name}: expected numbers, got {value!r:.60}")
    x = x.astype(float)
    if len(shape) != x.ndim or any(n not in (None, x.shape[k]) for k, n in enumerate(shape)):
        raise ValueError(f"{name}: expected shape {shape}, got {x.shape}")
    if not (np.abs(x) <= most).all():
        raise ValueError(f"{name}: expected finite numbers up to {most:g} in size, got "
                         f"{value!r:.60}: scale it")
    return x


def _check_config(config):
    for name in ("lam", "a0", "b0", "lr"):
        _check_positive(name, getattr(config, name))
    for name, least in (("L", 1), ("P", 0), ("batch", 1), ("initial_pulls", 0)):
        _check_int(name, getattr(config, name), least)


def _checked_root(precision, message):
    """root_of_inverse, or a ValueError with this message."""
    _check(np.allclose(precision, precision.T, 1e-6, 1e-9 * np.abs(precision).max()), message)
    try:
        return root_of_inverse(precision)
    except np.linalg.LinAlgError as error:
        raise ValueError(message) from error


def _checked_rows(posterior, phi, r):
    """Rows (n, g) and rewards (n,) of one tuple, or of many."""
    g = len(posterior.mu0)
    if np.ndim(phi) == 2:
        E = _array("phi", phi, (None, g), LARGEST)
        return E, _array("r", r, (len(E),))
    return _array("phi", phi, (g,), LARGEST)[None], _array("r", r, ())[None]


def _checked_tuple(agent, context, arm, reward):
    """Features and reward of a tuple, or a ValueError before anything has changed."""
    phi = agent.phi(context)
    _check_int("arm", arm, 0, agent.n_arms - 1)
    return phi, _array("reward", reward, ())


def _checked_matching(E_new, s2, ridge, floor):
    """Features and s2 of Eq. 6, of which one row at least says something of S."""
    _check(1e-6 <= ridge < 1 and 1e-6 <= floor < 1, "ridge, floor: expected both from 1e-6 to 1")
    s2 = _array("s2", s2, (None,))
    E = _array("E_new", E_new, (len(s2), None))
    norm2 = (E ** 2).sum(1)
    known = (s2 >= 0).all() and min(norm2 @ s2, norm2 @ norm2) > 1e-200
    _check(known, "E_new, s2: expected s2 >= 0, and a row with features and an s2 > 0")
    return E, s2


def _check_rank(i, E_old, E_new):
    g = E_new.shape[1]
    rank = min(np.linalg.matrix_rank(E) if len(E) else 0 for E in (E_old, E_new))
    _check(rank == g, f"E_old, E_new: expected rows of rank {g}, those of arm {i} have rank {rank}")


def _check_linear(dim, n_arms, v, noise):
    _check_int("dim", dim, 1)
    _check_int("n_arms", n_arms, 1)
    _check(callable(noise), f"noise: expected a function, got {noise!r:.60}")
    if v is not None:
        _check_positive("v", v)
        _check(noise is inverse_gamma_noise, "v, noise: expected one of them, v fixes the noise")


def _check_neural(network, n_arms, memory, prior, train):
    """What can be seen without a context."""
    _check_int("n_arms", n_arms, 1)
    usable = isinstance(network, nn.Module) and hasattr(network, "features")
    _check(usable and hasattr(network, "weights"),
           f"network: expected a module with features(x) and weights, got {network!r:.60}")
    shape = tuple(network.weights.shape)
    _check(len(shape) == 2 and shape[0] == n_arms,
           f"network: expected weights of shape ({n_arms}, g), got {shape}")
    for name, function in (("prior", prior), ("train", train)):
        _check(callable(function), f"{name}: expected a function, got {function!r:.60}")
    if memory is None:
        _check(prior is likelihood_matching, "prior: expected none, memory=None forgets nothing")
    else:
        _check_int("memory", memory, n_arms)


def _check_forward(network, contexts):
    """forward(x) = features(x) @ weights.T, up to rounding."""
    phi, weights = last_layer_activations(network, contexts), last_layer_weights(network)
    with torch.no_grad():
        D = network(_tensor(network, contexts)).double().numpy()
    expected = phi @ weights.T
    same = D.shape == expected.shape and np.allclose(D, expected, 1e-4, 1e-6 * (1 + phi.max()))
    _check(same, "network: expected forward(x) = features(x) @ weights.T, without a bias")
