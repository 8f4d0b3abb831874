"""Neural-linear bandits with limited memory, line by line.

    T. Zahavy and S. Mannor, "Neural Linear Bandits: Overcoming Catastrophic Forgetting through
    Likelihood Matching", 2019.   Full memory: C. Riquelme, G. Tucker, J. Snoek, "Deep Bayesian Bandits
    Showdown", ICLR 2018.

Read it beside the paper, top to bottom. Equations are named by their LaTeX labels:

    Sec. 2       BayesianLinearRegression (Eqs. posterior, BLR), LinearTS (Algorithm 1)
    Sec. 3       1 MLP, TextCNN, train (Eq. loss)   2 exploration: BayesianLinearRegression.update   3 ReplayBuffer
                 4 match_mean, transported_mean (Eq. mu_prior), match_covariance_sdp, match_covariance (Eq. sigma_opt),
                   with transport, forgotten and transported_covariance for what the paper leaves open
                 discussion: invertible_prior (Eqs. mu_sol, sdp_sol)
    Appendix A   NeuralLinearTS (Algorithm 2)
    Sec. 4.3     EpsilonGreedy

    paper            here           shape      what
    b(t)             context        (d,)       raw context; in Sec. 2 also the feature vector
    phi(t)           phi            (g,)       features: activations of the last hidden layer
    B^0, Phi^0       Phi0           (g, g)     prior precision (times nu2)
    Phi, f, R^2      Phi, f, R2     (g, g) ..  sums of phi phi', phi r, r^2 over the plays of one arm
    mu^0, mu-hat     mu0, mu_hat    (g,)       prior and posterior mean
    mu-tilde, nu^2   mu_tilde, nu2  (g,), ()   sampled weights and sampled noise variance
    a_i, b_i         a, b           ()         shape and scale of the inverse gamma; a(t) is `arm` here
    E^i_phi_old      E_old          (n, g)     old features of the buffered tuples of arm i, one a row
    E^i_phi          E_new          (n, g)     their new features
    s^2_j            s2             (n,)       phi_old_j' (Phi_old)^-1 phi_old_j
    (Phi^0)^-1       S              (g, g)     prior covariance (over nu2)
    N, L, P          n_arms, L, P   ()         arms; steps between learning phases; mini-batches in one
    ours             F              (g+1, g+1) triangular factor of the posterior, see BayesianLinearRegression
    ours             A, C, m        (g, g) ..  phi = A phi_old + e, C the mean of e e', m tuples left the buffer
    ours             K, X, psi      (g, g) ..  S = K X K', psi = K'phi (not the paper's psi, a slip for phi_old)

Where this differs from the paper (README.md has the reasons, test_nlts.py the proofs):
 1. nu2 itself is inverse gamma, a counts the plays of its own arm, b uses the full precision Phi0 + Phi.
 2. Eq. sigma_opt is matched to s^2, not s, and s^2 is computed with the Phi_old of item 3, prior included.
 3. What is carried over is what left the buffer, Phi_old = Phi0 + Phi - E_old'E_old: no tuple counts twice in a precision.
 4. a and b go on unchanged through a learning phase, and mu_hat of every arm is recomputed in it.
 5. Eq. sigma_opt has many solutions; ours is unique and bounded (`match_covariance`), and nearest to what the
    features' movement says of the tuples that left the buffer (`transport`, `transported_covariance`).
 6. mu0 is the last layer averaged with the old mean, carried over by Eq. mu_prior (`transported_mean`): a heuristic,
    weighted by the tuples in the buffer, which the last layer was just fitted to, and those that left it.
 7. Phi0 starts at lam I with lam = 0.25 for every agent, of size g; each arm is first pulled twice.
 8. A full buffer in which the played arm has no tuple gives up the oldest one of the fullest arm.
 9. The output layer has no bias, so that forward(x) = features(x) weights' (give features a constant 1 for one).
10. The network is trained by Adam, started afresh in each phase; its first weights are scaled by the fan-in.
"""
import json
import os
import warnings
import zipfile
from dataclasses import asdict, dataclass

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dtpqrt, dtrtrs
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
    initial_pulls: int = 2    # pulls of each arm, round robin, before sampling: the authors' code
    ridge: float = 0.1        # of likelihood matching: ours, as is kappa
    kappa: float = 10.0

    def __post_init__(self):
        for name, value in asdict(self).items():
            least = 0 if name in ("P", "initial_pulls") else 1 if name in ("L", "batch", "kappa") else None
            whole = name in ("L", "P", "batch", "initial_pulls")
            if not (np.isfinite(value) and (value > 0 if least is None else value >= least)) or whole and value % 1:
                raise ValueError(f"{name}: expected a {'whole ' * whole}number "
                                 f"{'> 0' if least is None else f'>= {least}'}, got {value}")


def _array(name, value, shape):
    """A float64 copy of `value`, or a ValueError that names the argument; None in `shape` is any length."""
    try:
        x = np.array(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers, got {value!r:.60}") from error
    if x.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, x.shape)):
        raise ValueError(f"{name}: expected shape {shape}, got {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or infinity")
    return x


def _cholesky(name, matrix):
    try:
        if np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-9 * np.abs(matrix).max()):
            return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        pass
    raise ValueError(f"{name}: expected a symmetric positive definite matrix")


def _solve(B, x):
    return cho_solve(cho_factor(B), x)                                   # B symmetric and positive definite


def _inverse(B):
    """The inverse of a positive definite B, exactly symmetric. What rounding took below 1e-14 of B's norm is put there."""
    try:
        K = solve_triangular(_cholesky("B", (B + B.T) / 2), np.eye(len(B)), lower=True)
    except ValueError:
        w, Q = np.linalg.eigh((B + B.T) / 2)
        K = Q.T / np.sqrt(w.clip(1e-14 * w[-1]))[:, None]
    return K.T @ K


# Sec. 2: Bayesian linear regression and Algorithm 1 -----------------------------------------------------------------

class BayesianLinearRegression:
    """One arm's posterior, Eq. (BLR): nu2 ~ Inv-Gamma(a, b) and mu_tilde | nu2 ~ N(mu_hat, nu2 (Phi0 + Phi)^-1).

    Beside the paper's sums it keeps an upper triangular matrix F, with B = Phi0 + Phi = R'R and

        F = [ R  R mu_hat ]       F'F = [ B            B mu_hat               ]
            [ 0  sqrt(2b) ]             [ (B mu_hat)'  mu_hat'B mu_hat + 2b   ].

    Observing (phi, r) adds the outer product of the row (phi', r) to F'F. That is all of Eq. (BLR): in the corner,
    mu_hat'B mu_hat + 2b grows by r^2, the printed formula of b. The QR decomposition of F with that row below it
    gives the new F without forming F'F, so B stays positive definite and b never decreases, at any scale of phi.
    """

    def __init__(self, dim, lam=Config.lam, a0=Config.a0, b0=Config.b0):
        self._set_prior(lam * np.eye(dim), np.zeros(dim), a0, b0)

    def _set_prior(self, Phi0, mu0, a, b):
        R = _cholesky("Phi0", Phi0).T
        self.Phi0, self.mu0, self.a, self.b = Phi0, mu0, float(a), float(b)
        self.Phi, self.f, self.R2 = np.zeros_like(Phi0), np.zeros_like(mu0), 0.0
        self.mu_hat = mu0.copy()
        self.F = np.asfortranarray(np.block([[R, (R @ mu0)[:, None]], [np.zeros((1, len(mu0))), np.sqrt(2 * b)]]))

    @property
    def precision(self):
        """B = Phi0 + Phi; the posterior covariance of mu is nu2 times its inverse. Sampling uses F, which is accurate
        even where features of 1e6 beside 1e-6 make this sum lose its small eigenvalues to rounding."""
        return self.Phi0 + self.Phi

    def update(self, phi, r):
        """Observe one reward r under the features phi (g,), or n rewards (n,) under the rows of phi (n, g)."""
        E = _array("phi", np.atleast_2d(phi), (None, len(self.mu0)))
        r = _array("r", np.atleast_1d(r), (len(E),))
        self.Phi += E.T @ E                                              # Phi = Phi + phi phi'
        self.f += E.T @ r                                                # f = f + phi r
        self.R2 += r @ r                                                 # R^2 = R^2 + r^2
        self.a += len(r) / 2                                             # a = a + 1/2
        # F of the next step: LAPACK's QR decomposition of a triangle with rows below it
        self.F = dtpqrt(0, min(8, len(self.F)), self.F, np.hstack([E, r[:, None]]))[0]
        # b = b0 + (R^2 + mu0'Phi0 mu0 - mu_hat'B mu_hat)/2; after a restart it goes on from where it was
        self.b = self.F[-1, -1] ** 2 / 2
        self.mu_hat = self._solve_R(self.F[:-1, -1])                     # mu_hat = B^-1 (Phi0 mu0 + f)

    def restart(self, Phi0, mu0, E, r):
        """A new prior, then the buffer's rows E (n, g) and rewards r (n,) as data; a and b go on as they were."""
        g, a, b = len(self.mu0), self.a, self.b
        r = _array("r", r, (None,))
        E = _array("E", E, (len(r), g))
        self._set_prior(_array("Phi0", Phi0, (g, g)), _array("mu0", mu0, (g,)), a, b)
        self.update(E, r)
        self.a, self.b, self.F[-1, -1] = a, b, np.sqrt(2 * b)            # nothing new was observed

    def sample(self, rng, nu2=None):
        """Draw (nu2, mu_tilde) from the posterior; a known noise variance may be given."""
        if nu2 is None:
            nu2 = self.b / rng.gamma(self.a)                             # nu2 ~ Inv-Gamma(a, b)
        z = rng.standard_normal(len(self.mu_hat))
        return nu2, self.mu_hat + np.sqrt(nu2) * self._solve_R(z)        # mu_tilde ~ N(mu_hat, nu2 B^-1)

    def predict(self, phi):
        """Mean, scale and degrees of freedom of the Student-t distribution of phi'mu_tilde."""
        phi = _array("phi", phi, (len(self.mu0),))
        s = np.linalg.norm(self._solve_R(phi, trans=1))                  # s^2 = phi'B^-1 phi
        return phi @ self.mu_hat, np.sqrt(self.b / self.a) * s, 2 * self.a

    def _solve_R(self, x, trans=0):
        """R^-1 x, or R'^-1 x: as R is the corner of the triangle F, LAPACK may solve with F and (x, 0)."""
        padded = np.zeros(len(x) + 1)
        padded[:-1] = x
        return dtrtrs(self.F, padded, trans=trans)[0][:-1]


class Agent:
    """What all agents share: `act` and `update` with checked arguments, `save` and `load` that continue bit for bit."""

    def __init__(self, n_arms, seed, config, dim=None, network=None, memory=None, **settings):
        sizes = [n_arms] if memory is None else [n_arms, memory]
        if not all(isinstance(n, (int, np.integer)) for n in sizes) or not 1 <= n_arms <= sizes[-1]:
            raise ValueError(f"n_arms, memory: expected whole 1 <= n_arms <= memory, got {n_arms} and {memory}")
        if network is not None:
            shape, dim = last_layer_weights(network).shape, getattr(network, "dim", None)
            if len(shape) != 2 or shape[0] != n_arms:
                raise ValueError(f"network: expected last-layer weights of shape ({n_arms}, g), got {shape}")
            network.eval()
            settings["network"] = [list(weights.shape) for weights in network.state_dict().values()]
        self.n_arms, self.config, self.dim, self.network = n_arms, config, dim, network
        self.t, self.rng = 0, np.random.default_rng(seed)
        self.arms, self.buffer, self.history, self.latest = [], ReplayBuffer(memory), None, None
        self.settings = json.dumps([type(self).__name__, n_arms, dim, memory, asdict(config), settings],
                                   default=lambda number: number.item())

    def act(self, context):
        """The arm to play in this context."""
        context = _array("context", context, (self.dim,))
        if self.t < self.config.initial_pulls * self.n_arms:
            return self.t % self.n_arms
        return self._choose(context)

    def update(self, context, arm, reward):
        """Observe the reward that the arm paid in this context; every L steps, learn."""
        context, reward = _array("context", context, (self.dim,)), float(_array("reward", reward, ()))
        if not isinstance(arm, (int, np.integer)) or not 0 <= arm < self.n_arms:
            raise ValueError(f"arm: expected an integer from 0 to {self.n_arms - 1}, got {arm!r}")
        self._observe(context, int(arm), reward)
        self.dim, self.t = len(context), self.t + 1                      # a network of the user's may not know dim
        if self.t % self.config.L == 0:
            self.learn()

    def learn(self):
        """The learning phase, if there is something to learn beside the posterior."""

    def _parts(self):
        parts = {f"arm{i}": arm for i, arm in enumerate(self.arms)} | {"buffer": self.buffer}
        return parts if self.history in (None, self.buffer) else parts | {"history": self.history}

    def _state(self):
        state = {"settings": self.settings, "rng": json.dumps(self.rng.bit_generator.state), "t": self.t}
        state["dim"] = self.dim or 0
        for name, part in self._parts().items():
            state |= {f"{name}/{k}": v for k, v in vars(part).items() if v is not None}
        if self.network is not None:
            state |= {f"network/{k}": v.numpy() for k, v in self.network.state_dict().items()}
        return {key: np.asarray(value) for key, value in state.items()}

    def save(self, path):
        """Write the whole state, random state included, to one .npz file; `load` needs an agent built alike."""
        with open(f"{path}.part", "wb") as file:
            np.savez(file, **self._state())
        os.replace(f"{path}.part", path)

    def load(self, path):
        """Go on where the saved agent stopped. Nothing in the file is executed."""
        rng, fixed = np.random.default_rng(), lambda state: {
            key: None if key.startswith(("buffer/", "history/")) else value.shape for key, value in state.items()}
        try:
            with np.load(path, allow_pickle=False) as file:
                state = dict(file)
            if str(state["settings"]) != self.settings:
                raise ValueError(f"it holds {state['settings']}, this agent is {self.settings}")
            rng.bit_generator.state = json.loads(str(state["rng"]))
            if fixed(state) != fixed(self._state()):
                raise ValueError("a part is missing or of another size")
        except (AttributeError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise ValueError(f"path: {path} was not written by save of an agent like this: {error}") from error
        for key, value in state.items():
            name, _, attribute = key.partition("/")
            if name in self._parts():
                setattr(self._parts()[name], attribute, value if value.ndim else value.item())
        if self.network is not None:
            self.network.load_state_dict({key[8:]: torch.from_numpy(value) for key, value in state.items()
                                          if key.startswith("network/")})
        self.rng, self.t, self.dim, self.latest = rng, int(state["t"]), int(state["dim"]) or None, None


class LinearTS(Agent):
    """Algorithm 1: Thompson sampling for linear contextual bandits.

    With the noise v given, as printed: B = I and mu_tilde ~ N(mu_hat, v^2 B^-1). With v=None the noise is sampled
    too (Eq. BLR, lam = 0.25), as in the paper's experiments, which also give each context a constant 1.
    """

    def __init__(self, dim, n_arms, v=None, lam=None, a0=Config.a0, b0=Config.b0, initial_pulls=None, seed=0):
        if v is not None and not 0 < v < np.inf:
            raise ValueError(f"v: expected > 0 or None, got {v}")
        lam = lam if lam is not None else Config.lam if v is None else 1.0
        pulls = initial_pulls if initial_pulls is not None else Config.initial_pulls if v is None else 0
        super().__init__(n_arms, seed, Config(lam=lam, a0=a0, b0=b0, initial_pulls=pulls), dim=dim, v=v)
        self.nu2 = None if v is None else v ** 2
        # for all i: set B_i = I_d, mu_hat_i = 0_d, f_i = 0_d
        self.arms = [BayesianLinearRegression(dim, lam, a0, b0) for _ in range(n_arms)]

    def _choose(self, b):
        # for all i: sample mu_tilde_i from N(mu_hat_i, v^2 B_i^-1)
        mu_tilde = [arm.sample(self.rng, self.nu2)[1] for arm in self.arms]
        # play arm a(t) := argmax_i b(t)' mu_tilde_i
        return int(np.argmax(mu_tilde @ b))

    def _observe(self, b, arm, reward):
        # B_a(t) = B_a(t) + b(t) b(t)', f_a(t) = f_a(t) + b(t) r_t, mu_hat_a(t) = B_a(t)^-1 f_a(t)
        self.arms[arm].update(b, reward)


# Sec. 3, 1: representation ------------------------------------------------------------------------------------------

class MLP(nn.Module):
    """The paper's network: one hidden layer of ReLUs. Uniform weights: |input| < 1/sqrt(d), |last layer| < 0.3."""

    def __init__(self, dim, n_arms, hidden=50, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def uniform(bound, *shape):
            """A parameter drawn from U(-bound, bound)."""
            x = torch.empty(shape, dtype=torch.float64)
            return nn.Parameter(x.uniform_(-bound, bound, generator=generator))

        self.dim = dim
        self.input = uniform(dim ** -0.5, hidden, dim)
        self.bias = nn.Parameter(torch.zeros(hidden, dtype=torch.float64))
        self.weights = uniform(0.3, n_arms, hidden)                      # (N, g)

    def features(self, x):
        """phi = LastLayerActivations(D(b)): (n, d) -> (n, g)."""
        return torch.relu(nn.functional.linear(x, self.input, self.bias))

    def forward(self, x):
        """D(b): the predicted reward of each arm, (n, d) -> (n, N)."""
        return self.features(x) @ self.weights.T


class TextCNN(nn.Module):
    """Sec. 4.3: convolutions over word embeddings, the maximum over time, and a linear layer of size `hidden`.

    A context is a sentence of token ids. There is no dropout: features are to be a function of the context.
    """

    def __init__(self, vocabulary, n_arms, embedding=128, widths=(3, 4, 5), filters=128, hidden=50, seed=0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):                          # the caller's random state stays as it is
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(vocabulary, embedding)
            self.convolutions = nn.ModuleList(nn.Conv1d(embedding, filters, width) for width in widths)
            self.dense = nn.Linear(filters * len(widths), hidden)
            self.weights = nn.Parameter(torch.empty(n_arms, hidden).uniform_(-0.3, 0.3))

    def features(self, x):
        """phi: (n, words) ids -> (n, g)."""
        if x.numel() and not 0 <= x.min() <= x.max() < self.embedding.num_embeddings:
            raise ValueError(f"context: expected token ids from 0 to {self.embedding.num_embeddings - 1}")
        x = self.embedding(x.long()).transpose(1, 2)                     # (n, embedding, words)
        x = [torch.relu(convolution(x)).amax(2) for convolution in self.convolutions]
        return self.dense(torch.cat(x, 1))

    def forward(self, x):
        """D(b): the predicted reward of each arm, (n, words) -> (n, N)."""
        return self.features(x) @ self.weights.T


def last_layer_weights(network):
    """LastLayerWeights(D), (N, g): the network's `weights`, or those of its last nn.Linear, which has no bias."""
    if hasattr(network, "weights"):
        return network.weights.detach().double().numpy()
    linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
    if not linear or linear[-1].bias is not None:
        raise ValueError("network: expected `weights` (N, g), or an nn.Linear(g, N, bias=False) as its last layer")
    return linear[-1].weight.detach().double().numpy()


def last_layer_activations(network, contexts):
    """phi = LastLayerActivations(D(b)) of the rows of `contexts`: (n, d) -> (n, g), float64."""
    with torch.no_grad():
        return network.features(_tensor(network, contexts)).double().numpy()


def _tensor(network, x):
    return torch.as_tensor(x, dtype=next(network.parameters()).dtype)


def train(network, buffer, P, batch, lr, rng):
    """Sec. 3, 1.1: P mini-batches of Eq. (loss), || D(b)_a - r ||^2, drawn with replacement from the buffer."""
    network.train()
    optimizer = torch.optim.Adam(network.parameters(), lr=lr, fused=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2 ** 31)))                    # for dropout in a network of the user's
        for _ in range(P):
            contexts, arms, rewards = buffer.minibatch(batch, rng)
            # only the output of the arm that was played is differentiated
            played = network(_tensor(network, contexts))[torch.arange(batch), torch.as_tensor(arms)]
            loss = ((played - _tensor(network, rewards)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    network.eval()


# Sec. 3, 3: memory buffer -------------------------------------------------------------------------------------------

class ReplayBuffer:
    """E: at most `capacity` tuples {b(t), a(t), r}; round robin within each arm. None is no limit."""

    def __init__(self, capacity=None):
        if capacity is not None and capacity < 1:
            raise ValueError(f"capacity: expected >= 1 or None, got {capacity}")
        self.capacity, self.n, self.added = capacity, 0, 0
        self.contexts, self.rewards = np.zeros((0, 0)), np.zeros(0)
        self.arms, self.times = np.zeros(0, int), np.zeros(0, int)

    def __len__(self):
        return self.n

    def add(self, context, arm, reward):
        """Store a copy of the tuple. A full buffer loses the first tuple of the same arm; if there is none, the
        first one of the arm that has most."""
        context = _array("context", context, self.contexts.shape[1:] if self.n else (None,))
        arms, slot = self.arms[:self.n], self.n
        if self.n == self.capacity:
            rows = np.flatnonzero(arms == (arm if arm in arms else np.bincount(arms).argmax()))
            slot = rows[self.times[rows].argmin()]
        elif self.n == len(self.arms):                                   # no slot left: double them
            more = max(self.n, 16)
            self.contexts = np.vstack([self.contexts.reshape(self.n, len(context)), np.zeros((more, len(context)))])
            self.arms, self.rewards, self.times = (np.append(x, np.zeros(more, x.dtype))
                                                   for x in (self.arms, self.rewards, self.times))
        self.contexts[slot], self.arms[slot], self.rewards[slot], self.times[slot] = context, arm, reward, self.added
        self.n, self.added = max(self.n, slot + 1), self.added + 1

    def rows_of(self, arm):
        """E_i: contexts (n_i, d) and rewards (n_i,) of an arm's tuples, oldest first."""
        rows = np.flatnonzero(self.arms[:self.n] == arm)
        rows = rows[self.times[rows].argsort()]
        return self.contexts[rows], self.rewards[rows]

    def minibatch(self, size, rng):
        """Contexts, arms and rewards of `size` tuples drawn with replacement."""
        if not self.n:
            raise ValueError("minibatch: expected a buffer with at least one tuple")
        rows = rng.integers(self.n, size=size)
        return self.contexts[rows], self.arms[rows], self.rewards[rows]


# Sec. 3, 4: likelihood matching -------------------------------------------------------------------------------------

def match_mean(E_old, E_new, mu_old):
    """Eq. (mu_prior) over the rows of the buffer: the mu0 with E_new mu0 = E_old mu_old, in least squares; of many, the
    nearest to mu_old. With fewer rows than features it is poor elsewhere: NeuralLinearTS uses `transported_mean`."""
    return mu_old + np.linalg.lstsq(E_new, (E_old - E_new) @ mu_old, rcond=None)[0]


def _whiten(E_new, s2, anchor, ridge, kappa):
    """psi = K'phi with KK' = the anchor; without one K is a multiple of I, and X is drawn to 0 instead of I."""
    s2 = _array("s2", s2, (None,))
    E_new = _array("E_new", E_new, (len(s2), None))
    if (s2 < 0).any() or not (ridge >= 0 and kappa >= 1):
        raise ValueError("s2, ridge, kappa: expected s2 >= 0, ridge >= 0 and kappa >= 1")
    g, norm2 = E_new.shape[1], (E_new ** 2).sum(1)
    if anchor is None:
        anchor, center = np.eye(g) * ((norm2 @ s2) / (norm2 @ norm2) if norm2 @ s2 > 0 else 1.0), 0.0
    else:
        anchor, center = _array("anchor", anchor, (g, g)), 1.0
    K = _cholesky("anchor", anchor)
    Psi = E_new @ K
    norm2 = (Psi ** 2).sum(1)                                            # I/kappa <= X <= kappa I bounds psi'X psi
    most = np.multiply(norm2, kappa, where=norm2 > 0, out=np.zeros(len(norm2)))
    return Psi, s2.clip(norm2 / kappa, most), K, center, ridge * (norm2 @ norm2) / max(len(s2), 1)


def match_covariance_sdp(E_new, s2, anchor=None, ridge=0.0, kappa=np.inf, **solver):
    """Eq. (sigma_opt) as printed but for s^2, in CVXPY: minimize sum_j (phi_j'S phi_j - s_j^2)^2 over S >= 0.

    With `ridge` and `kappa` it is the problem of `match_covariance`, whose oracle it is. Returns S = (Phi0)^-1.
    """
    import cvxpy as cp  # slow to import, and only the oracle needs it
    Psi, s2, K, center, rho = _whiten(E_new, s2, anchor, ridge, kappa)
    X, I = cp.Variable((len(K), len(K)), PSD=True), np.eye(len(K))       # S = K X K'
    misfit = cp.sum(cp.multiply(Psi @ X, Psi), axis=1) - s2              # Trace(X_j'S) - s_j^2 for all j
    bounds = [] if np.isinf(kappa) else [X >> I / kappa, X << I * kappa]
    cp.Problem(cp.Minimize(cp.sum_squares(misfit) + rho * cp.sum_squares(X - center * I)), bounds).solve(**solver)
    return K @ X.value @ K.T


def match_covariance(E_new, s2, anchor=None, ridge=1e-4, kappa=100.0, tol=1e-8, max_iter=100):
    """Eq. (sigma_opt) made unique and bounded. Returns S = (Phi0)^-1, the S = K X K' (KK' = anchor) that solves

        minimize  1/2 sum_j (psi_j'X psi_j - s_j^2)^2 + rho/2 ||X - I||^2   subject to  I/kappa <= X <= kappa I,

    psi_j = K'phi_j and rho = ridge * mean_j ||psi_j||^4. In words: of all S that match the s^2 of the buffer, the one
    nearest to the anchor, seen in units of the anchor; no direction gets more than kappa times as certain, or as
    uncertain, as the anchor has it, and an s^2 that no such S reaches is moved to the nearest that one may. Nothing
    depends on the units of phi or r. Without an anchor ||X||^2 replaces ||X - I||^2: the smallest S that matches.

    Solved in the dual, for n numbers y in place of g^2 (Qi and Sun, 2006). With y_j the multiplier of the j-th misfit
    the Lagrangian is minimal at X(y) = clip(Z), Z = I + sum_j y_j psi_j psi_j', where clip moves the eigenvalues w of
    Z = Q diag(w) Q' into [1/kappa, kappa]. What remains is smooth and convex: minimize
        theta(y) = rho/2 ||y||^2 - s2'y + 1/2 (||Z||^2 - ||Z - clip(Z)||^2),
        gradient   psi_j'X(y) psi_j + rho y_j - s_j^2: zero where the misfit is -rho y,
        Newton     H_jk = rho 1[j=k] + sum_ab W_ab p_ja p_jb p_ka p_kb, with p = Psi Q and
                   W_ab = (clip w_a - clip w_b) / (w_a - w_b).
    Where nothing is clipped W is 1 and H = rho I + (Psi Psi')^2, squared entry by entry: one step solves it. Pairs
    (a, b) with W < 1 are subtracted. Steps are halved until theta falls; a large ridge gives a start for a small one.
    """
    Psi, s2, K, center, rho = _whiten(E_new, s2, anchor, ridge, kappa)
    n, g = Psi.shape
    if ridge == 0:
        raise ValueError("ridge: expected > 0, without which there are many solutions")
    if not Psi.any():                                                    # nothing to match
        return K @ K.T

    def evaluate(y, rho):
        """theta and its gradient at y, and what the Newton matrix needs."""
        w, Q = np.linalg.eigh(center * np.eye(g) + (Psi.T * y) @ Psi)
        x, p = w.clip(1 / kappa, kappa), Psi @ Q
        theta = rho / 2 * y @ y - s2 @ y + x @ (2 * w - x) / 2           # ||Z||^2 - ||Z - clip(Z)||^2 = x'(2w - x)
        return theta, p ** 2 @ x + rho * y - s2, w, x, Q, p

    gram2, norm2 = (Psi @ Psi.T) ** 2, (Psi ** 2).sum(1)
    enough = lambda w: tol * np.linalg.norm(s2) + 1e-14 * np.linalg.norm(norm2) * np.abs(w).max()    # 1e-14: rounding
    stages = [rho * 10 ** k for k in (4, 2) if ridge * 10 ** k < 1] + [rho]
    y = _solve(gram2 + stages[0] * np.eye(n), s2 - center * norm2)       # the solution, if nothing is clipped
    for stage in stages:
        theta, gradient, w, x, Q, p = evaluate(y, stage)
        for _ in range(max_iter):
            if np.linalg.norm(gradient) <= enough(w):
                break
            i, j = np.triu_indices(g)
            W = np.divide(x[i] - x[j], w[i] - w[j], where=w[i] != w[j], out=(w == x)[i].astype(float))
            less = (1 - W) * (1 + (i != j))                              # pairs i < j stand for two
            pairs = p[:, i[less > 0]] * p[:, j[less > 0]]
            d = -_solve(gram2 + stage * np.eye(n) - (pairs * less[less > 0]) @ pairs.T, gradient)
            step = 1.0
            while (new := evaluate(y + step * d, stage))[0] > theta + 1e-4 * step * gradient @ d + 1e-12 * abs(theta):
                step /= 2
            y, (theta, gradient, w, x, Q, p) = y + step * d, new
    if np.linalg.norm(gradient) > enough(w):
        warnings.warn(f"match_covariance: residual {np.linalg.norm(gradient) / np.linalg.norm(s2):.1e} of s2 "
                      f"after {max_iter} Newton steps")
    S = K @ (Q * x) @ Q.T @ K.T
    return (S + S.T) / 2


def transport(E_old, E_new):
    """How features moved: phi = A phi_old + e, by least squares over the buffer (of many A, the nearest to I).

    Returns A (g, g) and C (g, g), the mean of e e'. m observations that left the buffer with sum M of phi_old phi_old'
    then are worth A M A' + m C under the new features: what a full memory would have, as far as the buffer can tell.
    """
    change, _, rank, _ = np.linalg.lstsq(E_old, E_new - E_old, rcond=1e-6)    # rcond: where E_old says nothing, A is I
    A = np.eye(len(change)) + change.T
    e = E_new - E_old @ A.T
    return A, e.T @ e / max(len(e) - rank, 1)                            # the fit took `rank` degrees of freedom


def forgotten(arm, E_old, r):
    """Precision Phi_old = Phi0 + Phi - E_old'E_old and mean of the posterior of what is no longer in the buffer."""
    w, Q = np.linalg.eigh(arm.Phi - E_old.T @ E_old)                     # sum over tuples that left: w < 0 is rounding
    Phi_old = arm.Phi0 + (Q * w.clip(0)) @ Q.T
    return Phi_old, _solve(Phi_old, arm.Phi0 @ arm.mu0 + arm.f - E_old.T @ r)


def transported_covariance(Phi_old, A, C, m, lam):
    """The anchor of match_covariance: the inverse of A (Phi_old - lam I) A' + m C + lam I, the precision that a full
    memory would have. If no feature changed it is (Phi_old)^-1; it is never less certain than the first prior lam I."""
    lam = min(lam, np.linalg.eigvalsh(Phi_old)[0])                       # unless Phi_old already is
    I = np.eye(len(A))
    return _inverse(A @ (Phi_old - lam * I) @ A.T + m * C + lam * I)


def transported_mean(Phi_old, mu_old, A, anchor):
    """Eq. (mu_prior) for the tuples that left the buffer: the mean that goes with the covariance `anchor`.

    With phi = A phi_old + e their sum of phi r, f, is A f_old + sum of e r, where f_old = Phi_old mu_old. Taking sum of e r
    to be 0 (what is new in phi told them nothing of r) leaves f = A f_old, and the mean of a posterior is its covariance
    times f. As lam -> 0 phi'mu0 is the least-squares fit to their old predictions phi_old'mu_old. If no feature changed it
    is mu_old.
    """
    return anchor @ A @ Phi_old @ mu_old


def invertible_prior(E_old, E_new, mu_old, Phi_old):
    """The analytical solution of Sec. 3 and Appendix C for invertible features (Eqs. mu_sol, sdp_sol): (mu0, Phi0).

    With rows as observations phi = A phi_old is E_new = E_old A', and T = E_new^-1 E_old = A'^-1 carries weights over:
    mu0 = T mu_old and (Phi0)^-1 = T (Phi_old)^-1 T', so Phi0 = A Phi_old A'.
    """
    A = np.linalg.lstsq(E_old, E_new, rcond=None)[0].T
    return np.linalg.lstsq(E_new, E_old @ mu_old, rcond=None)[0], A @ Phi_old @ A.T


# Appendix A: Algorithm 2 --------------------------------------------------------------------------------------------

class NeuralLinearTS(Agent):
    """Algorithm 2: limited memory neural-linear Thompson sampling.

    memory   None: all tuples are kept and nothing is forgotten, the algorithm of Riquelme et al.; n: at most n tuples
    priors   "both" (the paper's method), "mean" or "none" (its ablations), or "perfect": the network sees the buffer
             only, but the posterior is recomputed from all data, the reference for any prior
    mu0      of both priors. "last-layer": the weights of the network's last layer (what the paper uses); "matched":
             Eq. (mu_prior) for the m tuples of an arm that left the buffer; "averaged": m parts of the matched mean
             and n, the arm's tuples in the buffer, of the last layer
    """

    def __init__(self, network, n_arms, memory=None, priors="both", mu0="averaged", L=Config.L, P=Config.P, seed=0,
                 **hyper):
        for name, value, known in (("priors", priors, ("both", "mean", "none", "perfect")),
                                   ("mu0", mu0, ("averaged", "last-layer", "matched"))):
            if value not in known:
                raise ValueError(f"{name}: expected one of {known}, got {value!r}")
        config = Config(L=L, P=P, **hyper)
        super().__init__(n_arms, seed, config, network=network, memory=memory, priors=priors, mu0=mu0)
        self.priors, self.mu0 = priors, mu0
        if memory is None or priors == "perfect":
            self.history = self.buffer if memory is None else ReplayBuffer()
        # set for all i: Phi0_i = lam I, mu_hat_i = mu0_i = 0, Phi_i = 0, f_i = 0, a_i = a0, b_i = b0
        self.arms = [self._blank() for _ in range(n_arms)]
        # initialize replay buffer E and DNN D: self.buffer and self.network; define phi(t): self._phi

    def _blank(self):
        return BayesianLinearRegression(last_layer_weights(self.network).shape[1],
                                        self.config.lam, self.config.a0, self.config.b0)

    def _choose(self, context):
        # observe b(t), evaluate phi(t)
        phi = self._phi(context)
        # posterior sampling, for all i: nu2_i ~ Inv-Gamma(a_i, b_i),
        #     mu_tilde_i ~ N(mu_hat_i, nu2_i (Phi0_i + Phi_i)^-1)
        mu_tilde = [arm.sample(self.rng)[1] for arm in self.arms]
        # play arm a(t) := argmax_i phi(t)' mu_tilde_i
        return int(np.argmax(mu_tilde @ phi))

    def _phi(self, context):
        if self.latest is None or self.latest[0] != self.t or not np.array_equal(self.latest[1], context):
            self.latest = self.t, context, last_layer_activations(self.network, context[None])[0]
        return self.latest[2]                                            # evaluated once a step, by act or by update

    def _observe(self, context, arm, reward):
        # observe reward r_t
        phi = self._phi(context)
        # store {b(t), a(t), r_t} in E; if E is full, remove the first tuple with a = a(t)
        self.buffer.add(context, arm, reward)
        if self.history not in (None, self.buffer):
            self.history.add(context, arm, reward)
        # Bayesian linear regression update of Phi, f, mu_hat, a, R^2 and b of arm a(t)
        self.arms[arm].update(phi, reward)

    def learn(self):
        """If (t mod L) = 0: the three steps of a learning phase."""
        # for all i: evaluate old features on the replay buffer
        E_old = self.buffer_features()
        # train DNN for P steps
        train(self.network, self.buffer, self.config.P, self.config.batch, self.config.lr, self.rng)
        # compute priors for new features
        self.compute_priors(E_old)

    def buffer_features(self):
        """E^i_phi for all arms i, under the network as it is."""
        return [last_layer_activations(self.network, self.buffer.rows_of(i)[0]) for i in range(self.n_arms)]

    def compute_priors(self, E_old):
        """The end of a learning phase: summarize what was learned under the old features in priors on the new ones."""
        self.latest = None                                               # phi(t) is to be evaluated again
        if self.history is not None:                                     # nothing is forgotten: no prior is needed
            for i in range(self.n_arms):
                contexts, r = self.history.rows_of(i)
                self.arms[i] = self._blank()
                self.arms[i].update(last_layer_activations(self.network, contexts), r)
            return
        # for all i: evaluate new features on the replay buffer
        E_new = self.buffer_features()
        A, C = transport(np.vstack(E_old), np.vstack(E_new))
        for i, arm in enumerate(self.arms):
            r = self.buffer.rows_of(i)[1]
            Phi0, mu0 = self.prior(i, E_old[i], E_new[i], r, A, C)
            # Phi_i = sum_j phi_j phi_j', f_i = sum_j phi_j r_j
            arm.restart(Phi0, mu0, E_new[i], r)

    def prior(self, i, E_old, E_new, r, A, C):
        """Phi0 and mu0 of arm i under the new features. E_old, E_new (n, g) and r (n,) are its tuples in the buffer; how
        features moved, A and C (g, g), is what `transport` says of the tuples of all arms."""
        arm, c, n, g = self.arms[i], self.config, *E_new.shape
        Phi0, mu0 = c.lam * np.eye(g), np.zeros(g)
        if self.priors == "both":
            # solve for Phi0_i using Eq. (sigma_opt) with E_new, E_old and Phi_old
            Phi_old, mu_old = forgotten(arm, E_old, r)
            m = 2 * (arm.a - c.a0) - n                                   # so many of its tuples left the buffer
            anchor = transported_covariance(Phi_old, A, C, m, c.lam)
            s2 = (E_old * _solve(Phi_old, E_old.T).T).sum(1)
            Phi0 = _inverse(match_covariance(E_new, s2, anchor, c.ridge, c.kappa))
        if self.priors != "none":
            # set mu0_i <- LastLayerWeights(D)_i
            mu0 = last_layer_weights(self.network)[i]
        if self.priors == "both" and self.mu0 != "last-layer":           # averaged with what Eq. (mu_prior) carries over
            share = m / max(n + m, 1) if self.mu0 == "averaged" else 1.0
            mu0 = (1 - share) * mu0 + share * transported_mean(Phi_old, mu_old, A, anchor)
        return Phi0, mu0


class EpsilonGreedy(Agent):
    """Sec. 4.3's baseline: the arm with the highest D(b)_i, or with probability epsilon any arm."""

    def __init__(self, network, n_arms, epsilon, memory=None, L=Config.L, P=Config.P, seed=0, **hyper):
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon: expected 0 to 1, got {epsilon}")
        super().__init__(n_arms, seed, Config(L=L, P=P, **hyper), network=network, memory=memory, epsilon=epsilon)
        self.epsilon = epsilon

    def _choose(self, context):
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(self.n_arms))
        return int(np.argmax(last_layer_weights(self.network) @ last_layer_activations(self.network, context[None])[0]))

    def _observe(self, context, arm, reward):
        self.buffer.add(context, arm, reward)

    def learn(self):
        """Train DNN for P steps."""
        train(self.network, self.buffer, self.config.P, self.config.batch, self.config.lr, self.rng)
