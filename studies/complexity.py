"""Sec. 3.1 in numbers: time and memory of learning phases against T, and of Eq. 6 in N and n.

Training costs O(P) per phase whatever the memory, so it is left out: the network is only nudged.
What is fitted are the times of single phases, whose errors are independent: if a phase takes time
~ T^p, all phases up to T take ~ T^(p + 1).
"""
import time

import numpy as np
import torch

import datasets
import nlts
import nlts_beyond
from lab.recipes import MEMORY, papers_prior
from lab.report import text_table
from lab.runs import progress, read_once
from lab.statistics import growth
from studies.matching import seconds_of

PRIORS = {"full": None, "both-priors": papers_prior, "carried": nlts_beyond.carried_prior}
ARMS, TUPLES = (2, 4, 8, 16), (25, 50, 100, 200, 400, 800, 1600)
FEW, MANY = 400, 200                                  # tuples: the two ends that are fitted


def measure(o):
    """Time and memory of learning phases against T, and time of Eq. 6 against N and n."""
    return read_once(o, measured)


def measured(o):
    """The measurements as plain data; of several runs the fastest: busy moments drop out."""
    torch.set_num_threads(1)
    L = 100 if o.quick else nlts.Config.L
    played = [phases(o, o.seed + run, o.steps, L)
              for run in progress(range(o.runs), o.runs, "runs")]
    seconds, size = np.min(played, axis=0)
    tuples = TUPLES[:-1] if o.quick else TUPLES
    many = [n for n in tuples if n >= MANY]
    repeats = (3, 1) if o.quick else (9, 3)
    solved = {"N": [ARMS, seconds_of([(N, 100, 50) for N in ARMS], o.seed, repeats[0])],
              "n": [tuples, seconds_of([(1, n, 50) for n in tuples], o.seed, repeats[0])],
              "CVXPY": [many, seconds_of([(1, n, 50) for n in many], o.seed, repeats[1], "SCS")]}
    return {"L": L, "T": np.arange(L, o.steps + 1, L).tolist(), "agents": list(PRIORS),
            "seconds of a phase": seconds.tolist(), "bytes of the buffer": size.tolist(),
            "Eq. 6, s": solved}


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


def claims_of(data):
    """(claim, measured over, claimed exponent, at most?, exponent, its standard error)."""
    t, solved = np.array(data["T"]), data["Eq. 6, s"]
    full, both, carried = np.transpose(data["seconds of a phase"])
    size, limited, _ = np.transpose(data["bytes of the buffer"])
    least = t[-1] // 4
    late = f"T >= {least}"
    return [
        ("full memory, a phase: O(T), so all O(T²)", late, 1, False, *growth(t, full, least)),
        ("full memory, buffer: O(T)", late, 1, False, *growth(t, size, least)),
        ("both-priors, a phase: O(1), so all O(T)", late, 0, False, *growth(t, both, least)),
        ("carried, a phase: O(1), so all O(T)", late, 0, False, *growth(t, carried, least)),
        ("limited memory, buffer: O(1)", late, 0, False, *growth(t, limited, least)),
        ("Eq. 6, CVXPY: at most linear in n", f"n >= {MANY}", 1, True, *growth(*solved["CVXPY"])),
        ("Eq. 6, lab/fast.py: linear in N", "N >= 4", 1, False, *growth(*solved["N"], 4)),
        ("Eq. 6, lab/fast.py: at most linear in n", f"n <= {FEW}", 1, True,
         *growth(*solved["n"], most=FEW)),
        ("Eq. 6, lab/fast.py: at most linear in n", f"n >= {FEW}", 1, True,
         *growth(*solved["n"], FEW)),
    ]


def tell(data):
    """The exponents beside the paper's."""
    rows = []
    for what, over, power, at_most, p, error in claims_of(data):
        near = p < power + 0.25 and (at_most or p > power - 0.25)
        rows.append([what, over, power, f"{p:.2f} ± {error:.2f}", "as claimed" if near else
                     "less" if p < power else "more"])
    return (f"Statlog, L = {data['L']}, fastest of {data['options']['runs']} run(s); the time of "
            "training is left out.\nExponents by least squares in logarithms, ± standard error; "
            "\"as claimed\" is within 0.25.\n"
            + text_table(["Sec. 3.1", "measured over", "claimed", "exponent", ""], rows))
