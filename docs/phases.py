"""What docs/forgetting.html shows: a posterior through ten learning phases, a bandit's regret."""
import base64
import copy
import functools

import numpy as np
import torch

import nlts
import nlts_beyond
from lab import fast

PHASES, L = 10, 60                                    # learning phases, tuples before each
MEMORY = [30, 60, 120]                                # sizes of the buffer
CONTEXTS = {"one": "one distribution", "moving": "moving"}
PRIORS = {"no prior": nlts.no_prior, "the paper’s prior": nlts.likelihood_matching,
          "our prior": nlts_beyond.carried_prior}
PANELS = [*PRIORS, "full memory"]
TRAINING = {"L": L, "P": 300, "lr": 1e-2}
HIDDEN = 20                                           # ReLUs of the network
NOISE = 0.1                                           # standard deviation of rewards
ARMS = 1.2 * np.array([[-0.9, 0], [0, 0.6], [0.9, 0]])  # where, on hills, an arm pays most
RUNS, EVERY = 20, 10                                  # of the bandit; its regret is every 10 steps
EDGE, GRID = 2.0, 41                                  # the plane is [-EDGE, EDGE]^2
SIDE = np.linspace(-EDGE, EDGE, GRID)
PLANE = np.stack(np.meshgrid(SIDE, SIDE), -1).reshape(-1, 2)
FAR = 0.7                                             # no tuple nearer: "away from all tuples"
LEVELS = [0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10]            # of s(b)


def stream(kind, rng):
    """Contexts (PHASES L, 2) along a half circle: all over it, or from left to right and back."""
    n = PHASES * L
    place = rng.random(n)
    if kind == "moving":
        there_and_back = 1 - np.abs(2 * np.arange(n) / n - 1)
        place = (there_and_back + 0.1 * (place - 0.5)).clip(0, 1)
    angle = np.pi * (1 - place)
    circle = np.stack([np.cos(angle), np.sin(angle) - 0.4], 1)
    return 1.2 * circle + 0.1 * rng.standard_normal((n, 2))


def spread_network(n_arms, rng):
    """An MLP whose ReLUs bend all over the plane."""
    network = nlts.MLP(2, n_arms, HIDDEN, seed=int(rng.integers(2 ** 31)))
    network.bias.data[:] = torch.as_tensor(rng.uniform(-1, 1, HIDDEN))
    return network


def replay(kind, memory, seed, phases=PHASES):
    """The panels. One arm sees the same tuples with each prior; all train the same network. A phase
    has `s` (panels, GRID^2) and the mean log ratios of s^2 to full memory's, None without a tuple:
    `ratio` on forgotten tuples, `away` from all tuples."""
    rng = np.random.default_rng(seed)
    contexts = stream(kind, rng)
    rewards = np.sin(2 * contexts[:, 0]) + contexts[:, 1]
    rewards += NOISE * rng.standard_normal(len(rewards))
    network = spread_network(1, rng)
    agents = [nlts.NeuralLinearTS(copy.deepcopy(network), 1, memory, prior, seed=seed, **TRAINING)
              for prior in PRIORS.values()]
    frames = []
    for t in range(L, phases * L + 1, L):
        for agent in agents:
            for context, reward in zip(contexts[t - L:t], rewards[t - L:t], strict=True):
                agent.update(context, 0, reward)
        frames.append(frame(agents, contexts[:t], rewards[:t], memory))
    return contexts, frames


def frame(agents, contexts, rewards, memory):
    """What the panels show right after a learning phase."""
    network, t = agents[0].network, len(contexts)
    E = nlts.last_layer_activations(network, contexts)
    g = E.shape[1]
    full = nlts.BayesianLinearRegression(nlts.Config.lam * np.eye(g), np.zeros(g), 1, 1)
    full.update(E, rewards)
    arms = [agent.arms[0] for agent in agents] + [full]

    def ratio(rows):
        return [mean_log_ratio(arm.variance(rows), full.variance(rows)) for arm in arms]

    plane = nlts.last_layer_activations(network, PLANE)
    nearest = np.linalg.norm(PLANE[:, None] - contexts, axis=2).min(1)
    forgotten = max(t - memory, 0)
    return {"s": np.sqrt([arm.variance(plane) for arm in arms]), "forgotten": forgotten,
            "ratio": ratio(E[:forgotten]), "away": ratio(plane[nearest > FAR])}


def mean_log_ratio(s2, full):
    """The mean of log(s2 / full), or None of no tuple."""
    return float(np.log(s2 / full).mean()) if len(s2) else None


def hills(contexts):
    """Expected rewards (steps, arms): each arm has a hill."""
    return np.exp(-((contexts[:, None] - ARMS) ** 2).sum(2) / 0.6)


def waves(contexts):
    """Expected rewards (steps, arms): waves from left to right, each arm's a third behind."""
    return (1 + np.sin(3 * contexts[:, :1] + 2 * np.pi / 3 * np.arange(len(ARMS)))) / 2


def slopes(contexts):
    """Expected rewards (steps, arms): each arm's grow evenly towards its place."""
    return (1 + contexts @ ARMS.T) / 2


def play(kind, memory, seed, pays):
    """One run of the bandit: cumulative regret (panels, PHASES L). Each agent really plays."""
    rng = np.random.default_rng(seed)
    contexts = stream(kind, rng)
    means = pays(contexts)                                                   # (steps, arms)
    noise = NOISE * rng.standard_normal(len(contexts))
    network = spread_network(len(ARMS), rng)
    choices = [{"memory": memory, "prior": prior} for prior in PRIORS.values()] + [{}]
    regret = np.zeros((len(PANELS), len(contexts)))
    for row, choice in enumerate(choices):
        agent = nlts.NeuralLinearTS(copy.deepcopy(network), len(ARMS), train=fast.train, seed=seed,
                                    **choice, **TRAINING)
        for t, context in enumerate(contexts):
            arm = agent.act(context)
            agent.update(context, arm, means[t, arm] + noise[t])
            regret[row, t] = means[t].max() - means[t, arm]
    return regret.cumsum(1)


def measure(seed=0):
    """All numbers of the page, ready for JSON: of each kind of contexts and size of the buffer; and
    the last regret with the smallest buffer, of each kind of rewards, too."""
    views, rewards = {}, {}
    for kind, name in CONTEXTS.items():
        for memory in MEMORY:
            contexts, frames = replay(kind, memory, seed)
            views[f"{kind}-{memory}"] = written(contexts, frames, runs(kind, memory, seed, hills))
        for pays in (hills, waves, slopes):
            last = runs(kind, MEMORY[0], seed, pays)[:, :, -1]
            rewards[f"{pays.__name__}, {name}"] = np.round(mean_and_error(last), 1).T.tolist()
    return {"seed": seed, "phases": PHASES, "L": L, "grid": GRID, "edge": EDGE, "levels": LEVELS,
            "every": EVERY, "panels": PANELS, "views": views, "rewards": rewards}


@functools.cache
def runs(kind, memory, seed, pays):
    """Cumulative regret (RUNS, panels, PHASES L) of the bandit."""
    return np.array([play(kind, memory, seed + run, pays) for run in range(RUNS)])


def mean_and_error(values):
    """Mean over runs, the first axis, and its standard error."""
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))


def written(contexts, frames, regret):
    """What is measured, as JSON has it. Contexts and maps are bytes in base64: from -EDGE to EDGE,
    and log s from the lowest level to the highest."""
    curves = regret[:, :, EVERY - 1::EVERY]
    mean, error = mean_and_error(curves)
    low, high = np.log(LEVELS[0]), np.log(LEVELS[-1])
    maps = np.array([np.log(frame["s"]) for frame in frames])
    return {"contexts": encoded((contexts + EDGE) / (2 * EDGE)),
            "maps": encoded((maps - low) / (high - low)),
            "forgotten": [frame["forgotten"] for frame in frames],
            "ratio": [rounded(frame["ratio"]) for frame in frames],
            "away": [rounded(frame["away"]) for frame in frames],
            "regret": mean.round(1).tolist(), "error": error.round(1).tolist()}


def encoded(shares):
    """Numbers from 0 to 1 as bytes in base64."""
    return base64.b64encode((255 * shares.clip(0, 1)).round().astype(np.uint8)).decode()


def decoded(text, shape):
    """What `encoded` was given, up to 1/510."""
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape) / 255


def rounded(numbers):
    """With two decimals, None as it is."""
    return [None if x is None else round(x, 2) + 0.0 for x in numbers]
