"""The toy of docs/forgetting.html: arms that learn along an arc.

A learning phase leaves two things behind, its network and its prior. What an arm knows between two
phases is that prior and the tuples that it has seen since: `Replay.posteriors` adds them up.
"""
import copy
from dataclasses import dataclass

import numpy as np
import torch

import nlts
import nlts_beyond
from lab import fast
from lab.agents import PrintedPrior

MOVES = ["before", "out", "carry", "back"]            # of a learning phase
NOISE = 0.1                                           # standard deviation of rewards
EDGE = 2.0                                            # the plane is [-EDGE, EDGE]^2
FAR = 0.7                                             # from every tuple: away from tuples
BEST = 1.2 * np.array([[-0.9, 0], [0, 0.6], [0.9, 0]])  # where, on hills, an arm pays most


@dataclass(frozen=True)
class Sizes:
    """Of a toy: learning phases, tuples before each, ReLUs, mini-batches, learning rate."""
    phases: int = 10
    L: int = 60
    hidden: int = 20
    P: int = 300
    lr: float = 1e-2


SIZES = Sizes()
PRIORS = {"no": nlts.no_prior, "printed": PrintedPrior(solver="SCS", max_iters=2500),
          "smallest": nlts.likelihood_matching, "carried": nlts_beyond.carried_prior}
PANELS = {"no": "no prior", "printed": "the paper’s prior", "smallest": "the paper’s prior",
          "carried": "our prior", "full": "full memory"}


# Contexts, rewards, network -----------------------------------------------------------------------

def stream(kind, n, rng):
    """Contexts (n, 2) along a half circle: from 'one' distribution all over it, or 'moving' from
    its left end to its right and back."""
    place, time = rng.random(n), np.arange(n) / n
    if kind == "moving":
        place = (1 - np.abs(2 * time - 1) + 0.1 * (place - 0.5)).clip(0, 1)
    angle = np.pi * (1 - place)
    circle = np.stack([np.cos(angle), np.sin(angle) - 0.4], 1)
    return 1.2 * circle + 0.1 * rng.standard_normal((n, 2))


def spread_network(n_arms, hidden, rng):
    """An MLP whose ReLUs bend all over the plane."""
    network = nlts.MLP(2, n_arms, hidden)
    angle = rng.uniform(0, 2 * np.pi, hidden)
    network.input.data[:] = torch.as_tensor(np.stack([np.cos(angle), np.sin(angle)], 1))
    network.bias.data[:] = torch.as_tensor(rng.uniform(-EDGE, EDGE, hidden))
    return network


def plane(grid):
    """Contexts (grid^2, 2) all over the plane, row by row from below."""
    side = np.linspace(-EDGE, EDGE, grid)
    return np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)


# One arm, with each prior -------------------------------------------------------------------------

@dataclass(frozen=True)
class Replay:
    """Tuples of one arm, and what each learning phase left behind; the first entry of networks and
    priors is from before the first phase."""
    contexts: np.ndarray           # (phases L, 2)
    rewards: np.ndarray            # (phases L,)
    L: int
    memory: int
    networks: list
    priors: dict                   # {name of a prior: a posterior per phase, without any tuples}

    def forgotten(self, phase):
        """How many tuples have left the buffer when this phase begins."""
        return max(phase * self.L - self.memory, 0)

    def posteriors(self, phase, move):
        """The network, and with each prior and full memory the arm's posterior, after a move of a
        phase (from 1): before it, with the buffer taken out, carried over, with the buffer back."""
        k = phase - (move in ("before", "out"))
        first, t = self.forgotten(k), phase * self.L
        last = {"before": t, "out": self.forgotten(phase), "carry": first, "back": t}[move]
        start = self.priors["no"][0]                  # lam I, before any tuple
        known = {name: self.seen(k, carried[k], first, last)
                 for name, carried in self.priors.items()}
        return self.networks[k], known | {"full": self.seen(k, start, 0, t)}

    def seen(self, k, prior, first, last):
        """What follows from a prior and tuples, under the features after phase k."""
        arm = copy.deepcopy(prior)
        arm.update(nlts.last_layer_activations(self.networks[k], self.contexts[first:last]),
                   self.rewards[first:last])
        return arm

    def ratios(self, phase, move):
        """s(b) of each panel over full memory's, geometric means: where tuples were forgotten
        (None before there are any) and away from all tuples."""
        network, known = self.posteriors(phase, move)
        gone, t = self.contexts[:self.forgotten(phase)], phase * self.L
        spots = plane(41)
        nearest = np.linalg.norm(spots[:, None] - self.contexts[:t], axis=2).min(1)
        return {name: [ratio(arm, known["full"], network, where)
                       for where in (gone, spots[nearest > FAR])] for name, arm in known.items()}


def replay(kind, memory, seed, sizes, priors=PRIORS):
    """One arm sees the same tuples with each prior; all train the same network."""
    rng = np.random.default_rng(seed)
    contexts = stream(kind, sizes.phases * sizes.L, rng)
    expected = np.sin(2 * contexts[:, 0]) + contexts[:, 1]
    rewards = expected + NOISE * rng.standard_normal(len(contexts))
    first = spread_network(1, sizes.hidden, rng)
    carried = {name: [nlts.first_prior(sizes.hidden, nlts.Config())] for name in priors}
    for name, prior in priors.items():
        agent = nlts.NeuralLinearTS(copy.deepcopy(first), 1, memory, prior, seed=seed, L=sizes.L,
                                    P=sizes.P, lr=sizes.lr)
        networks = [first]
        for context, reward in zip(contexts, rewards, strict=True):
            agent.update(context, 0, reward)
            if agent.t % sizes.L == 0:
                networks.append(copy.deepcopy(agent.network))
                kept, _, paid = agent.buffer.arrays()
                rows = nlts.last_layer_activations(agent.network, kept)
                carried[name].append(agent.arms[0].without(rows, paid))
    return Replay(contexts, rewards, sizes.L, memory, networks, carried)


def deviation(arm, network, contexts):
    """s(b) of contexts: the standard deviation of the expected reward, over that of the noise."""
    return np.sqrt(arm.s2(nlts.last_layer_activations(network, contexts)))


def ratio(arm, full, network, contexts):
    """The geometric mean of s(b) over full memory's; None if there is no context."""
    if not len(contexts):
        return None
    s, right = (deviation(one, network, contexts) for one in (arm, full))
    return float(np.exp(np.log(s / right).mean()))


# A bandit with three arms -------------------------------------------------------------------------

def hills(contexts):
    """Expected rewards (steps, arms): each arm has a hill."""
    return np.exp(-((contexts[:, None] - BEST) ** 2).sum(2) / 0.6)


def waves(contexts):
    """Expected rewards (steps, arms): waves from left to right, each arm's a third behind."""
    return (1 + np.sin(3 * contexts[:, :1] + 2 * np.pi / 3 * np.arange(len(BEST)))) / 2


def slopes(contexts):
    """Expected rewards (steps, arms): each arm's grow evenly towards its place."""
    return (1 + contexts @ BEST.T) / 2


def play(kind, memory, seed, pays, sizes):
    """One run: cumulative regret (panels, steps). Each agent really plays, full memory last."""
    rng = np.random.default_rng(seed)
    contexts = stream(kind, sizes.phases * sizes.L, rng)
    means = pays(contexts)                                                   # (steps, arms)
    noise = NOISE * rng.standard_normal(len(contexts))
    network = spread_network(len(BEST), sizes.hidden, rng)
    choices = [{"memory": memory, "prior": prior} for prior in PRIORS.values()] + [{"memory": None}]
    regret = np.zeros((len(choices), len(contexts)))
    for row, choice in enumerate(choices):
        agent = nlts.NeuralLinearTS(copy.deepcopy(network), len(BEST), train=fast.train, seed=seed,
                                    L=sizes.L, P=sizes.P, lr=sizes.lr, **choice)
        for t, context in enumerate(contexts):
            arm = agent.act(context)
            agent.update(context, arm, means[t, arm] + noise[t])
            regret[row, t] = means[t].max() - means[t, arm]
    return regret.cumsum(1)
