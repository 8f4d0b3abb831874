"""Sec. 3.1 in numbers: time and memory of learning phases against T, and of Eq. 6 in N, n, g.

Training costs O(P) a phase whatever the memory, so it is left out: the network is only nudged.
"""
import time

import numpy as np
import torch

import beyond
import datasets
import nlts
from lab import plots
from lab.agents import MEMORY
from lab.matching import synthetic
from lab.runs import progress
from lab.text import Report, growth, rough, text_table

PRIORS = {"full memory": None, "limited memory, the paper": nlts.likelihood_matching,
          "limited memory, ours": beyond.carried_prior}
ARMS, TUPLES = (2, 4, 8, 16), (25, 50, 100, 200, 400, 800, 1600)
FEATURES = (10, 20, 50, 100, 200)


def complexity(o):
    """Time and memory of learning phases against T, and time of Eq. 6 against N, n and g."""
    torch.set_num_threads(1)
    T = o.steps or (2000 if o.quick else 8000)
    L = 100 if o.quick else nlts.Config.L
    runs = o.runs or (1 if o.quick else 3)
    played = [phases(o, o.seed + run, T, L) for run in progress(range(runs), runs, "runs")]
    seconds, size = np.min(played, axis=0)            # the fastest run: busy moments drop out
    sizes = {"N": [(N, 100, 50) for N in ARMS], "n": [(1, n, 50) for n in TUPLES],
             "g": [(1, 100, g) for g in FEATURES]}
    if o.quick:
        sizes = {axis: cases[:-1] for axis, cases in sizes.items()}
    solved = {axis: matching_seconds(o.seed, cases, 3 if o.quick else 9)
              for axis, cases in sizes.items()}
    t = np.arange(L, T + 1, L)
    claims = claims_of(t, seconds, size, solved)
    data = {"T": t.tolist(), "agents": list(PRIORS), "seconds of a phase": seconds.tolist(),
            "bytes of the buffer": size.tolist(), "sizes N, n, g": sizes, "Eq. 6, s": solved}
    figure = complexity_figure(t, seconds.cumsum(0), size, solved, runs)
    return Report(complexity_text(t, seconds, size, claims, L, runs) + rough(o), data,
                  {"complexity": figure})


# What is measured ---------------------------------------------------------------------------------

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


def matching_seconds(seed, sizes, repeats):
    """Seconds of Eq. 6 for each of the sizes (N, n, g): N arms with n tuples each, g features."""
    rng, times = np.random.default_rng(seed), []
    cases = [[synthetic(rng, n, g) for _ in range(N)] for N, n, g in sizes]
    for _ in range(repeats):                          # all sizes take turns
        row = []
        for case in cases:
            start = time.process_time()
            for arm in case:
                nlts.match_covariance(arm["E_new"], arm["s2"])
            row.append(time.process_time() - start)
        times.append(row)
    return np.min(times, axis=0).tolist()


# What is told -------------------------------------------------------------------------------------

def claims_of(t, seconds, size, solved):
    """(claim, measured over, claimed exponent, at most?, exponent, its standard error)."""
    least, total = t[-1] // 4, seconds.cumsum(0)
    constant = np.polyfit(t, seconds[:, 0], 1)[1].clip(0, 0.9 * seconds[:, 0].min())
    quadratic = total[:, 0] - constant * np.arange(1, len(t) + 1)
    late, turn = f"T >= {least}", 400
    by_N, by_n, by_g = (dict(zip(sizes, solved[axis], strict=False))
                        for axis, sizes in (("N", ARMS), ("n", TUPLES), ("g", FEATURES)))
    return [
        ("full memory: time O(T²)", late, 2, False, *growth(t, total[:, 0], least)),
        (f"- without {1000 * constant:.1f} ms a phase", late, 2, False,
         *growth(t, quadratic, least)),
        ("full memory: buffer O(T)", late, 1, False, *growth(t, size[:, 0], least)),
        ("limited memory, the paper: time O(T)", late, 1, False, *growth(t, total[:, 1], least)),
        ("limited memory, ours: time O(T)", late, 1, False, *growth(t, total[:, 2], least)),
        ("limited memory: buffer O(1)", late, 0, False, *growth(t, size[:, 1], least)),
        ("Eq. 6: linear in arms N", "N >= 4", 1, False, *growth(by_N, by_N.values(), 4)),
        ("Eq. 6: at most linear in n", f"n <= {turn}", 1, True,
         *growth(by_n, by_n.values(), most=turn)),
        ("Eq. 6: at most linear in n", f"n >= {turn}", 1, True, *growth(by_n, by_n.values(), turn)),
        ("Eq. 6: in g", "g >= 50", None, True, *growth(by_g, by_g.values(), 50)),
    ]


def complexity_text(t, seconds, size, claims, L, runs):
    """The exponents, and what a phase costs in the end."""
    rows = []
    for what, over, power, at_most, p, error in claims:
        verdict = ""
        if power is not None:
            near = p < power + 0.5 and (at_most or p > power - 0.5)
            verdict = "supported" if near else "not supported"
        rows.append([what, over, "none" if power is None else power, f"{p:.2f} ± {error:.2f}",
                     verdict])
    table = text_table(["Sec. 3.1", "measured over", "claimed", "exponent", ""], rows)
    late = 1000 * seconds[-len(t) // 4:].mean(0)
    costs = ", ".join(f"{name} {ms:.1f}" for name, ms in zip(PRIORS, late, strict=True))
    return (f"Statlog, L = {L}, {runs} run(s), training left out. Exponents by least squares in "
            f"logarithms.\nSupported: no other whole exponent is nearer.\n{table}\n"
            f"Milliseconds of a phase towards T = {t[-1]}: {costs}.\n"
            f"Tuples: {size[-1, 0] / 1e3:.0f} kB, with limited memory {size[-1, 1] / 1e3:.0f}.")


# What is drawn ------------------------------------------------------------------------------------

def complexity_figure(t, seconds, size, solved, runs):
    """Time and memory against T, and Eq. 6 against N, n and g."""
    figure, axes = plots.panels(f"Sec. 3.1: Statlog, fastest of {runs} run(s), training left out")
    for i, name in enumerate(PRIORS):
        plots.curve(axes[0], i, t, seconds[:, i], name)
    for i, name in enumerate(("full memory", f"limited memory, {MEMORY} N tuples")):
        plots.curve(axes[1], i, t, size[:, i] / 1e3, name)
    labels = "N arms (n = 100, g = 50)", "n tuples (N = 1, g = 50)", "g features (N = 1, n = 100)"
    for i, (x, y) in enumerate(zip((ARMS, TUPLES, FEATURES), solved.values(), strict=True)):
        plots.curve(axes[2], i, x[:len(y)], 1000 * np.array(y), labels[i])
    axes[0].set(title="features, priors, posterior", xlabel="steps T",
                ylabel="seconds in learning phases so far")
    axes[1].set(title="memory of the buffer", xlabel="steps T", ylabel="kB of tuples")
    axes[2].set(title="Eq. 6, one phase", xlabel="N, n or g", ylabel="milliseconds")
    for panel in axes:
        plots.loglog(panel)
    return figure
