"""Other bandits with a neural network, on the same rows, with the same network.

LiM2: O. Nabati, T. Zahavy and S. Mannor, "Online Limited Memory Neural-Linear Bandits with
Likelihood Matching", 2021. NeuralTS: W. Zhang, D. Zhou, L. Li and Q. Gu, "Neural Thompson
Sampling", 2021. Both are written from their descriptions, with the settings of their public
programs; what is chosen otherwise is said below.
"""
from functools import partial

import numpy as np

import nlts
from lab import paper, report
from lab.recipes import RECIPES, RECOMMENDED, WHEEL_PHASES, Recipe
from lab.report import STYLE, mean_sd, plus_minus, problem_of, text_table
from lab.runs import execute, make_task
from lab.statistics import LEVEL, grouped, holm, p_value, paired
from studies.released import RMSProp, first_network

# Two agents ---------------------------------------------------------------------------------------


class LiM2:
    """Likelihood matching at every step: one step of training on a batch, and one of projected
    gradient descent on the covariance of each arm. The matched posterior is the prior of the next
    step, and the whole buffer is added to it again, so that it soon explores little."""

    def __init__(self, network, n_arms, memory, train=None, per_arm=16, size=0.01, decay=0.05,
                 seed=0, **hyper):
        self.config = nlts.Config(**hyper)
        self.network = network
        self.n_arms = n_arms
        self.batch = per_arm * n_arms
        self.size = size                              # of a step on the covariances, at t = 1
        self.optimizer = RMSProp(decay)               # `train` is not asked
        self.buffer = nlts.ReplayBuffer(memory)
        self.t = 0
        self.rng = np.random.default_rng(seed)
        g = nlts.last_layer_weights(network).shape[1]
        self.arms = [nlts.first_posterior(g, self.config) for _ in range(n_arms)]
        self.R2, self.n = np.zeros((2, n_arms))       # of all tuples of an arm

    def act(self, context):
        """The arm to play in this context."""
        if self.n.min() < self.config.initial_pulls:
            return int(np.argmin(self.n))
        phi = nlts.last_layer_activations(self.network, context[None])[0]
        mu_tilde = [arm.sample(self.rng)[1] for arm in self.arms]
        return int(np.argmax(mu_tilde @ phi))

    def update(self, context, arm, reward):
        """Observe the reward that the arm paid in this context; learn, if there is a batch."""
        phi = nlts.last_layer_activations(self.network, context[None])[0]
        self.buffer.add(context, arm, reward)
        self.arms[arm].update(phi, reward)
        self.R2[arm] += reward ** 2
        self.n[arm] += 1
        self.t += 1
        if self.t >= self.batch:
            self.learn()

    def learn(self):
        """Train on a batch, match each covariance on it, and put in the buffer."""
        contexts, arms, rewards = self.buffer.arrays()
        rows = self.rng.integers(len(arms), size=self.batch)
        phi = nlts.last_layer_activations(self.network, contexts)
        E_old = phi[rows]
        self.optimizer.step(self.network, contexts[rows], arms[rows], rewards[rows])
        phi = nlts.last_layer_activations(self.network, contexts)
        E_new = phi[rows]
        weights = nlts.last_layer_weights(self.network)
        for i in range(self.n_arms):
            drawn = arms[rows] == i
            S = self.arms[i].root @ self.arms[i].root.T
            S = match_step(S, E_old[drawn], E_new[drawn], self.size / self.t)
            r = rewards[arms == i]
            a = self.config.a0 + (self.n[i] - len(r)) / 2
            b = self.config.b0 + max(self.R2[i] - r @ r, 0) / 2
            self.arms[i] = nlts.BayesianLinearRegression(np.linalg.inv(S), weights[i], a, b)
            self.arms[i].update(phi[arms == i], r)


def match_step(S, E_old, E_new, size, clip=5.0, least=1e-5):
    """One step of projected gradient descent towards Eq. 6: under E_new the covariance S is to give
    the s² that it gave under E_old."""
    s2 = ((E_old @ S) * E_old).sum(1)
    misfit = ((E_new @ S) * E_new).sum(1) - s2
    gradient = 2 * (E_new.T * misfit) @ E_new
    gradient *= clip / max(np.linalg.norm(gradient), clip)
    values, Q = np.linalg.eigh(S - size * gradient)
    return (Q * (values.clip(0) + least)) @ Q.T


class NeuralTS:
    """The reward of arm i is sampled from N(D(b)_i, nu² lam g'U⁻¹g / m): g is the gradient of
    D(b)_i by all weights, m the width of the network, and U = lam I + sum g g'/m over the plays, of
    which the diagonal is kept. The network is one for all arms, and is trained on all tuples."""

    def __init__(self, network, n_arms, memory=None, train=nlts.train, nu=1.0, seed=0, **hyper):
        self.config = nlts.Config(**hyper)
        self.network = network
        self.n_arms = n_arms
        self.train = train
        self.nu = nu
        self.buffer = nlts.ReplayBuffer()
        self.rng = np.random.default_rng(seed)
        self.n = np.zeros(n_arms, int)
        lam = self.config.lam
        self.U_input = np.full(network.input.shape, lam)                     # (g, d)
        self.U_bias = np.full(network.bias.shape, lam)                       # (g,)
        self.U_weights = np.full(network.weights.shape, lam)                 # (N, g)

    def gradients(self, context):
        """D(b) (N,), and squared gradients: of D(b)_i by its own weights (g,), and of each D(b)_i
        by the inputs of the ReLUs (N, g)."""
        phi = nlts.last_layer_activations(self.network, context[None])[0]
        weights = nlts.last_layer_weights(self.network)
        return weights @ phi, phi ** 2, weights ** 2 * (phi > 0)

    def estimate(self, context):
        """Mean and standard deviation of each arm's reward, (N,) both."""
        D, by_weights, by_inputs = self.gradients(context)
        inner = 1 / self.U_bias + (1 / self.U_input) @ context ** 2          # (g,)
        total = (by_weights / self.U_weights + by_inputs * inner).sum(1)     # g'U⁻¹g of each arm
        return D, self.nu * np.sqrt(self.config.lam * total / len(inner))

    def act(self, context):
        """The arm to play in this context."""
        if self.n.min() < self.config.initial_pulls:
            return int(np.argmin(self.n))
        return int(np.argmax(self.rng.normal(*self.estimate(context))))

    def update(self, context, arm, reward):
        """Observe the reward that the arm paid in this context; every L steps, learn."""
        _, by_weights, by_inputs = self.gradients(context)
        m = len(by_weights)
        self.U_weights[arm] += by_weights / m
        self.U_bias += by_inputs[arm] / m
        self.U_input += np.outer(by_inputs[arm], context ** 2) / m
        self.buffer.add(context, arm, reward)
        self.n[arm] += 1
        if self.n.sum() % self.config.L == 0:
            self.train(self.network, self.buffer, self.config, self.rng)


# What is played -----------------------------------------------------------------------------------

WIDE = partial(first_network, switches=("wide",))
BIASED = partial(first_network, switches=("wide", "bias"))
PEERS = {  # of others, then ours
    "LiM2": Recipe("LiM2", LiM2, hyper={"lam": 1.0}, network=WIDE),
    "LiM2 with output bias": Recipe("LiM2, its network's output with a bias, as in its program",
                                    LiM2, hyper={"lam": 1.0}, network=BIASED),
    "NeuralTS": Recipe("NeuralTS, diagonal", NeuralTS, False, hyper=RECOMMENDED | {"lam": 1e-3}),
    "greedy": RECIPES["greedy"],
    "recommended": RECIPES["recommended"],
    "carried": RECIPES["carried"],
    "both-priors": RECIPES["both-priors"],
    "neural-linear": RECIPES["neural-linear"],
}
OURS = "recommended", "carried"
SETS = (*paper.TABLE, "wheel")
DELTA = 0.5                                           # of the wheel


def measure(o):
    """Rewards on the paper's data sets and on the wheel."""
    tasks = []
    for d in o.datasets:
        wheel = {"delta": DELTA, "steps": min(o.steps, 4000)} if d == "wheel" else {}
        for name in o.algorithms:
            phases = d == "wheel" and name in ("carried", "both-priors", "neural-linear")
            tasks.append(make_task(o, d, name, recipe=PEERS[name],
                                   hyper=WHEEL_PHASES if phases else {}, **wheel))
    return execute(o, tasks)


# What is told -------------------------------------------------------------------------------------

def tell(lines):
    """Rewards, their spread, seconds; what ours gain over each peer, and where they lose."""
    lines = [line | {"problem": problem_of(line)} for line in lines]
    rewards = grouped(lines, "problem", "algorithm")
    seconds = grouped(lines, "problem", "algorithm", value="seconds")
    names = list(grouped(lines, "algorithm"))
    rows = [[d, *(mean_sd(own[name]) for name in names)] for d, own in rewards.items()]
    parts = [text_table(["reward", *names], rows) + (
        f"\nmean ± standard deviation of {report.runs_of(lines)}, all on the same rows")]
    parts.append(report.lowest_text(rewards))
    rows = [[d, *(f"{own[name].mean():.1f}" for name in names)] for d, own in seconds.items()]
    parts.append(text_table(["CPU seconds per run", *names], rows))
    parts += [gains_text(rewards, mine) for mine in OURS if mine in names and len(names) > 1]
    return "\n\n".join([*parts, CHOSEN])


def gains_text(rewards, mine):
    """What one of ours gains over each of the others, and a sentence on where it loses."""
    others = [name for name in next(iter(rewards.values())) if name != mine]
    gains = {(d, name): own[mine] - own[name] for d, own in rewards.items() for name in others}
    p = holm([p_value(*paired(x), len(x)) for x in gains.values()])
    sure = {key for key, value in zip(gains, p, strict=True) if value <= LEVEL}
    rows = [[d, *(plus_minus(*paired(gains[d, name])) + (" *" if (d, name) in sure else "  ")
                  for name in others)] for d in rewards]
    words = []
    for name in others:
        two = {d: np.sign(paired(gains[d, name])[0]) for d in rewards
               if abs(paired(gains[d, name])[0]) > 2 * paired(gains[d, name])[1]}
        lost = [d for d, sign in two.items() if sign < 0]
        words.append(f"{mine} against {name}: ahead on {len(two) - len(lost)} of {len(rewards)}, "
                     f"behind on {len(lost)}" + (f" ({'; '.join(lost)})" if lost else ""))
    runs = len(next(iter(gains.values())))
    chance = p_value(2, 1, runs)
    return "\n".join([
        text_table([f"{mine} minus", *others], rows),
        "Paired by run, ± standard error; * at 5 % (t-test, Holm's correction for this table). "
        "Ahead, behind: by more",
        "than two standard errors, without a correction; of two that earn the same, one is so far "
        f"ahead in {100 * chance:.0f} % of", f"comparisons with {runs} runs.", *words])


CHOSEN = """chosen here
  All have one layer of 50 ReLUs. LiM2, recommended, carried, both-priors and greedy have 100 tuples
  per arm; NeuralTS and neural-linear keep all.
  LiM2: one step of RMSProp on 16 tuples per arm, step size 0.1/(1 + t/20), then one on each
  covariance, of size 0.01/t, gradients up to 5, + 1e-5 I; λ = 1, first weights within 0.3. Its
  public program has an output bias that the regression lacks: told apart, for it changes rewards.
  NeuralTS: λ = 0.001, ν = 1; one network with an output per arm; trained as `recommended` is, with
  the same L, P and initial pulls, and not 1,000 steps after each play, as its program does.
  greedy: ε = 0, and the L, P and initial pulls of `recommended`."""


# What is drawn ------------------------------------------------------------------------------------

LOOKS = STYLE | {"LiM2": {"color": "#6A3D9A", "marker": "h"},
                 "LiM2 with output bias": {"color": "#B294C7", "marker": "p"},
                 "NeuralTS": {"color": "#8C564B", "marker": ">"}}


def draw(lines):
    """What each earns, in percent of recommended's reward: a row per problem."""
    rewards = grouped([line | {"problem": problem_of(line)} for line in lines],
                      "problem", "algorithm")
    names = [name for name in next(iter(rewards.values())) if name != "recommended"]
    if not names or "recommended" not in next(iter(rewards.values())):
        return {}
    figure, panel = report.pyplot().subplots(figsize=(7.5, 1.5 + 0.5 * len(rewards)))
    for k, name in enumerate(names):
        gains = [paired(100 * (own[name] - own["recommended"]) / own["recommended"].mean())
                 for own in rewards.values()]
        value, error = np.nan_to_num(np.transpose(gains), posinf=0)
        rows = np.arange(len(rewards)) + 0.09 * (k - (len(names) - 1) / 2)
        panel.errorbar(value, rows, xerr=error, label=name, markersize=4,
                       **LOOKS[name] | {"linestyle": "none"})
    panel.axvline(0, color="black", linewidth=0.8)
    panel.set_yticks(range(len(rewards)), rewards)
    panel.set(ylim=(len(rewards) - 0.5, -0.5), xlabel="reward minus that of recommended, %")
    figure.legend(loc="outside lower center", ncols=4)
    figure.suptitle(f"Mean of {report.runs_of(lines)} ± 1 standard error, paired by run")
    return {"peers": figure}
