"""What the method costs: solvers of Eq. 6, Sec. 3.1 in numbers, a step and a run.

All is measured in one process, by turns, so that a busy machine slows everybody: compare ratios.
"""
import gc
import json
import time
from dataclasses import replace
from functools import partial

import numpy as np
import torch

import datasets
import nlts
import nlts_beyond
from lab import fast
from lab.recipes import RECIPES
from lab.report import label, pyplot, style, text_table
from lab.runs import Task, run_task
from lab.statistics import growth
from studies.costs_problems import (
    Factorizing,
    bounds,
    captured,
    nudge,
    objective,
    play,
    spread,
    synthetic,
)

SOLVERS = {
    "nlts.match_covariance": nlts.match_covariance,
    "SCS, as printed, 2,500 iterations": partial(nlts.match_covariance_sdp, solver="SCS",
                                                 max_iters=2500),
    "Clarabel, as printed": partial(nlts.match_covariance_sdp, solver="CLARABEL"),
}
OURS, SCS, _ = SOLVERS
PRIORS = {"neural-linear": None, "both-priors": nlts.likelihood_matching,
          "carried": nlts_beyond.carried_prior}
TUPLES, MANY, ARMS = (25, 50, 100, 200, 400, 800, 1600), (200, 500, 1000, 2000), (2, 4, 8, 16)
DIMS = 50, 117, 389, 562                              # hidden units, Mushroom, Census, Smartphones
RUNS = "no-prior", "both-priors", "neural-linear"


def measure(options):
    """All costs as plain data."""
    torch.set_num_threads(1)
    seed = options.seed
    buffers = [buffer for dataset in ("mushroom", "adult", "statlog")
               for buffer in spread(captured(dataset, (2, 5, 9), seed), 4)]
    return {
        "solvers": [solved(*buffer) for buffer in buffers],
        "phases": {"played": fastest(options, 8000, 400),
                   "at random": fastest(options, 40_000, 400, True)},
        "n": [TUPLES, eq6_seconds(OURS, [(1, n) for n in TUPLES], seed)],
        "n, SCS": [MANY, eq6_seconds(SCS, [(1, n) for n in MANY], seed, repeats=3)],
        "N": [ARMS, eq6_seconds(OURS, [(N, 100) for N in ARMS], seed)],
        "step": {dim: step_seconds(dim, 50, 5, seed) for dim in DIMS},
        "training": training_seconds(5, seed),
        "run": run_seconds(4000, 5, seed)}


def clock(function, *arguments):
    """CPU seconds that a call takes, without garbage collection, as in timeit."""
    gc.disable()
    start = time.process_time()
    function(*arguments)
    seconds = time.process_time() - start
    gc.enable()
    return seconds


# Eq. 6 --------------------------------------------------------------------------------------------

def solved(E, s2):
    """Seconds of each solver; and by how much the objective of the same problem in CVXPY is above
    that of nlts.match_covariance."""
    times = [{name: clock(solver, E, s2) for name, solver in SOLVERS.items()} for _ in range(3)]
    seconds = {name: float(np.median([one[name] for one in times])) for name in SOLVERS}
    E = E / np.sqrt((E ** 2).sum(1).mean())           # CVXPY's tolerances want numbers of about 1
    s2 = s2 / s2.mean()
    ours = objective(E, s2, nlts.match_covariance(E, s2))
    S = nlts.match_covariance_sdp(E, s2, *bounds(E, s2), solver="CLARABEL")
    return {"n": len(s2), "seconds": seconds, "excess": objective(E, s2, S) / ours - 1}


def eq6_seconds(solver, sizes, seed, repeats=5):
    """Seconds of Eq. 6 for each of the sizes (N, n): N arms with n tuples each."""
    rng = np.random.default_rng(seed)
    cases = [[synthetic(rng, n) for _ in range(N)] for N, n in sizes]
    times = [[sum(clock(SOLVERS[solver], *arm) for arm in case) for case in cases]
             for _ in range(repeats)]                 # all sizes take turns
    return np.min(times, axis=0).tolist()


# Sec. 3.1, a step, a run --------------------------------------------------------------------------

def phases(T, L, seed, at_random=False):
    """Seconds of each learning phase, and tuples in the buffer after it, of each of PRIORS. Arms
    are chosen by the agents or, so that buffers stay alike and T can be long, at random."""
    problem = datasets.load("statlog", T, seed)
    N, found = problem.n_arms, {"T": [], "seconds": [], "tuples": []}
    agents = []
    for prior in PRIORS.values():
        limits = {"memory": 100 * N, "prior": prior} if prior else {"memory": None}
        agents.append(nlts.NeuralLinearTS(nlts.MLP(problem.dim, N, seed=seed), N, train=nudge,
                                          L=L, seed=seed, **limits))
    drawn = np.random.default_rng(seed).integers(N, size=T)
    for t, (context, rewards) in enumerate(zip(problem.contexts, problem.rewards, strict=True)):
        row = []
        for agent in agents:
            arm = drawn[t] if at_random else agent.act(context)
            row.append(clock(agent.update, context, arm, rewards[arm]))
        if (t + 1) % L == 0:
            found["T"].append(t + 1)
            found["seconds"].append(row)
            found["tuples"].append([len(agent.buffer.tuples) for agent in agents])
    return found


def fastest(options, *arguments):
    """`phases` of several runs, of which the fastest counts: busy moments drop out."""
    played = [phases(*arguments[:2], options.seed + run, *arguments[2:])
              for run in range(options.runs)]
    return played[0] | {"seconds": np.min([one["seconds"] for one in played], 0).tolist()}


def step_seconds(dim, steps, blocks, seed, n_arms=7):
    """Seconds of a step of LinearTS, and of Factorizing: medians over blocks of steps."""
    rng = np.random.default_rng(seed)
    agents = nlts.LinearTS(dim, n_arms, initial_pulls=0, seed=seed), Factorizing(dim, n_arms, seed)
    times = []
    for _ in range(blocks):
        contexts, rewards = rng.normal(size=(steps, dim)), rng.normal(size=(steps, n_arms))
        problem = datasets.Problem("made up", contexts, rewards, rewards.max(1))
        times.append([clock(play, agent, problem) / steps for agent in agents])
    return np.median(times, axis=0).tolist()


def training_seconds(repeats, seed, dim=9, n_arms=7):
    """Seconds of training in a phase: nlts.train, and lab/fast.py."""
    rng = np.random.default_rng(seed)
    buffer, network = nlts.ReplayBuffer(None), nlts.MLP(dim, n_arms, seed=seed)
    for t, context in enumerate(rng.normal(size=(400, dim))):
        buffer.add(context, t % n_arms, context[0])
    nlts.train(network, buffer, nlts.Config(P=1), rng)       # torch's first step is slower
    times = [[clock(train, network, buffer, nlts.Config(), rng)
              for train in (nlts.train, fast.train)] for _ in range(repeats)]
    return np.median(times, axis=0).tolist()


def run_seconds(steps, pairs, seed):
    """Seconds of whole runs on Statlog, by turns."""
    tasks = {name: Task("costs", "statlog", name, RECIPES[name], steps, seed=seed) for name in RUNS}
    found = {name: [] for name in RUNS}
    for run in range(pairs):
        for name, task in tasks.items():
            found[name].append(run_task(replace(task, run=run))["seconds"])
    return found


# Report -------------------------------------------------------------------------------------------

def report(measured):
    """Ratios of solvers, exponents of Sec. 3.1, ratios of steps and runs."""
    solvers, seconds = measured["solvers"], measured["run"]
    ratios = {name: [one["seconds"][name] / one["seconds"][OURS] for one in solvers]
              for name in SOLVERS}
    runs = {name: float(np.median(np.divide(seconds[name], seconds["no-prior"]))) for name in RUNS}
    return "\n\n".join([
        f"On buffers of real runs SCS takes {np.median(ratios[SCS]):.0f} times the CPU time of "
        f"{OURS}.\nA run of both-priors takes {runs['both-priors']:.2f} times the CPU time of one "
        "of no-prior.",
        solvers_text(solvers, ratios), claims_text(measured), ratios_text(measured, runs)])


def solvers_text(solvers, ratios):
    """A row per solver."""
    rows = [[name, f"{1000 * np.median([one['seconds'][name] for one in solvers]):.1f}",
             f"{np.median(ratio):.1f}", f"{min(ratio):.1f} to {max(ratio):.1f}"]
            for name, ratio in ratios.items()]
    tuples = [one["n"] for one in solvers]
    excess = [one["excess"] for one in solvers]
    return text_table(["Eq. 6", "median ms", "median ratio", "range"], rows) + (
        f"\n{len(solvers)} buffers of real runs of both-priors, {min(tuples)} to {max(tuples)} "
        f"tuples, g = 50.\nThe problem of {OURS} by Clarabel: its objective is above ours by "
        f"{min(excess):.0e} to {max(excess):.0e}.")


def claims_of(measured):
    """(claim, measured over, claimed exponent, exponent, its standard error)."""
    claims = []
    for how, found in measured["phases"].items():
        T, least = found["T"], found["T"][-1] // 4
        full, both, carried = np.transpose(found["seconds"])
        kept, limited, _ = np.transpose(found["tuples"])
        over = f"{how}, T >= {least}"
        claims += [
            ("full memory, a phase: O(T), so all O(T²)", over, 1, *growth(T, full, least)),
            ("full memory, tuples: O(T)", over, 1, *growth(T, kept, least)),
            ("both-priors, a phase: O(1), so all O(T)", over, 0, *growth(T, both, least)),
            ("carried, a phase: O(1), so all O(T)", over, 0, *growth(T, carried, least)),
            ("limited memory, tuples: O(1)", over, 0, *growth(T, limited, least))]
    return claims + [
        ("Eq. 6 in arms: linear, nlts.py", "N >= 4", 1, *growth(*measured["N"], 4)),
        ("Eq. 6 in n: at most linear, SCS", "n >= 200", 1, *growth(*measured["n, SCS"])),
        ("Eq. 6 in n: at most linear, nlts.py", "n >= 200", 1, *growth(*measured["n"], 200))]


def claims_text(measured):
    """The exponents beside the paper's."""
    rows = []
    for what, over, claimed, p, error in claims_of(measured):
        at_most = "at most" in what
        near = p < claimed + 0.25 and (at_most or p > claimed - 0.25)
        rows.append([what, over, claimed, f"{p:.2f} ± {error:.2f}",
                     "as claimed" if near else "less" if p < claimed else "more"])
    return text_table(["Sec. 3.1", "measured over", "claimed", "exponent", ""], rows) + (
        "\nExponents by least squares in logarithms, ± standard error; as claimed: within 0.25. "
        "Training is left out.\nPlayed: arms as the agents choose them. At random, and over longer "
        "T, was added after `played` had been seen.")


def ratios_text(measured, runs):
    """CPU times of steps, of training and of runs."""
    pairs = {f"LinearTS step, 7 arms, d = {dim}; factorizing at each update": pair
             for dim, pair in measured["step"].items()}
    pairs[f"training in a phase, P = {nlts.Config.P}; by lab/fast.py"] = measured["training"]
    rows = [[what, f"{1000 * one:.2f}", f"{1000 * other:.2f}", f"{other / one:.2f}"]
            for what, (one, other) in pairs.items()]
    seconds = {name: 1000 * np.median(x) for name, x in measured["run"].items()}
    rows += [[f"Statlog, a run of no-prior; {name}", f"{seconds['no-prior']:.0f}",
              f"{seconds[name]:.0f}", f"{runs[name]:.2f}"] for name in RUNS[1:]]
    return text_table(["what; compared with", "CPU ms", "the other's", "ratio"], rows) + (
        f"\nmedians; of runs, the median ratio of {len(measured['run']['no-prior'])} pairs")


def files(measured):
    """The measurements."""
    return {"costs.json": json.dumps(measured) + "\n"}


def plot(measured):
    """CPU time of a learning phase against T."""
    found = measured["phases"]["played"]
    figure, axis = pyplot().subplots(figsize=(6.5, 3.8))
    for name, seconds in zip(PRIORS, np.transpose(found["seconds"]), strict=True):
        axis.plot(found["T"], 1000 * seconds, markersize=4, **style(name))
        axis.annotate(label(name), (found["T"][-1], 1000 * seconds[-1]), (6, 0),
                      textcoords="offset points", va="center", color=style(name)["color"])
    axis.set(xlabel="step T", ylabel="CPU time of a learning phase, ms", ylim=(0, None))
    axis.set_title("Statlog, without the time of training", fontsize=9)
    return {"": figure}
