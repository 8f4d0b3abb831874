"""Sec. 3.1 in numbers: time and memory of learning phases against T, and of Eq. 6 in N and n.

Training costs O(P) a phase whatever the memory, so it is left out: the network is only nudged.
"""
import time

import numpy as np
import torch

import beyond
import datasets
import nlts
from lab.agents import MEMORY
from lab.matching import seconds_of
from lab.runs import progress
from lab.text import Report, growth, rough, text_table

PRIORS = {"full": None, "both-priors": nlts.likelihood_matching, "carried": beyond.carried_prior}
ARMS, TUPLES, CVXPY = (2, 4, 8, 16), (25, 50, 100, 200, 400, 800, 1600), (200, 400, 800, 1600)


def complexity(o):
    """Time and memory of learning phases against T, and time of Eq. 6 against N and n."""
    torch.set_num_threads(1)
    T = o.steps or (2000 if o.quick else 8000)
    L = 100 if o.quick else nlts.Config.L
    runs = o.runs or (1 if o.quick else 3)
    played = [phases(o, o.seed + run, T, L) for run in progress(range(runs), runs, "runs")]
    seconds, size = np.min(played, axis=0)            # the fastest run: busy moments drop out
    solved = {"N": seconds_of([(N, 100, 50) for N in ARMS], o.seed),
              "n": seconds_of([(1, n, 50) for n in TUPLES], o.seed),
              "CVXPY": seconds_of([(1, n, 50) for n in CVXPY], o.seed, 3, "SCS")}
    t = np.arange(L, T + 1, L)
    text = f"Statlog, L = {L}, fastest of {runs} run(s), training left out.\n"
    text += complexity_text(claims_of(t, seconds, size, solved)) + rough(o)
    data = {"T": t.tolist(), "agents": list(PRIORS), "seconds of a phase": seconds.tolist(),
            "bytes of the buffer": size.tolist(), "Eq. 6, s": solved}
    return Report(text, data)


def nudge(network, buffer, config, rng):
    """In place of training: all weights move a little."""
    for p in network.parameters():
        p.data += 0.01 * torch.as_tensor(rng.standard_normal(p.shape))


def phases(o, seed, T, L):
    """Seconds of each learning phase, and bytes of the buffer after it: (2, phases, agents).

    The agents take turns at every step, so that a busy machine slows all of them.
    """
    problem = datasets.load("statlog", T, seed, o.data_dir)
    N, agents = problem.n_arms, []
    for prior in PRIORS.values():
        limited = {"memory": MEMORY * N, "prior": prior} if prior else {}
        network = nlts.MLP(problem.dim, N, seed=seed)
        agents.append(nlts.NeuralLinearTS(network, N, train=nudge, L=L, seed=seed, **limited))
    rows = []
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        row = []
        for agent in agents:
            arm = agent.act(context)
            start = time.process_time()
            agent.update(context, arm, rewards[arm])
            seconds = time.process_time() - start
            row.append((seconds, len(agent.buffer.tuples) * (context.nbytes + 16)))
        if agent.t % L == 0:
            rows.append(row)
    return np.transpose(rows, (2, 0, 1))


def claims_of(t, seconds, size, solved):
    """(claim, measured over, claimed exponent, at most?, exponent, its standard error)."""
    least, total = t[-1] // 4, seconds.cumsum(0)
    late, N, n = f"T >= {least}", solved["N"], solved["n"]
    return [
        ("full memory: time O(T²)", late, 2, False, *growth(t, total[:, 0], least)),
        ("full memory: buffer O(T)", late, 1, False, *growth(t, size[:, 0], least)),
        ("limited memory, both-priors: time O(T)", late, 1, False, *growth(t, total[:, 1], least)),
        ("limited memory, carried: time O(T)", late, 1, False, *growth(t, total[:, 2], least)),
        ("limited memory: buffer O(1)", late, 0, False, *growth(t, size[:, 1], least)),
        ("Eq. 6, CVXPY: at most linear in n", "n >= 200", 1, True, *growth(CVXPY, solved["CVXPY"])),
        ("Eq. 6, our solver: linear in N", "N >= 4", 1, False, *growth(ARMS, N, 4)),
        ("Eq. 6, our solver: at most n", "n <= 400", 1, True, *growth(TUPLES, n, most=400)),
        ("Eq. 6, our solver: at most n", "n >= 400", 1, True, *growth(TUPLES, n, 400)),
    ]


def complexity_text(claims):
    """The exponents beside the paper's."""
    rows = []
    for what, over, power, at_most, p, error in claims:
        near = p < power + 0.5 and (at_most or p > power - 0.5)
        verdict = "supported" if near else "not supported"
        rows.append([what, over, power, f"{p:.2f} ± {error:.2f}", verdict])
    return ("Exponents by least squares in logarithms. Supported: no other whole one is nearer.\n"
            + text_table(["Sec. 3.1", "measured over", "claimed", "exponent", ""], rows))
