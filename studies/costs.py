"""What the method costs: solvers of Eq. 6, Sec. 3.1 in numbers, a step and a run.

All is measured in one process, by turns, so that a busy machine slows everybody: compare ratios.
"""
import json
import time
from dataclasses import replace
from functools import partial
from timeit import timeit

import numpy as np
import torch
from scipy.stats import linregress

import datasets
import nlts
from lab import report as lab
from lab.recipes import RECIPES, with_arguments
from lab.runs import Task, make_agent, run_task

SOLVERS = {
    "nlts.match_covariance": nlts.match_covariance,
    "SCS, as printed, 2,500 iterations": partial(nlts.match_covariance_sdp, solver="SCS",
                                                 max_iters=2500),
    "Clarabel, as printed": partial(nlts.match_covariance_sdp, solver="CLARABEL"),
}
OURS, SCS, _ = SOLVERS
GROWING = "neural-linear", "both-priors", "carried"   # whose learning phases are timed
DIMS = 50, 562                                        # hidden units, Smartphones
RUNS = "no-prior", "both-priors", "neural-linear"


def measure(options):
    """All costs as plain data."""
    torch.set_num_threads(1)
    buffers = [buffer for dataset in ("mushroom", "adult", "statlog")
               for buffer in captured(dataset, 5, options.seed)]
    played = [phases(8000, 400, options.seed + run) for run in range(options.runs)]
    return {
        "solvers": [{name: clock(solver, *buffer) for name, solver in SOLVERS.items()}
                    for buffer in buffers],
        "phases": {"T": played[0][0], "tuples": played[0][1],
                   "seconds": np.min([seconds for *_, seconds in played], 0).tolist()},
        "step": {dim: step_seconds(dim, 200, options.seed) for dim in DIMS},
        "run": run_seconds(4000, 5, options.seed)}


def clock(function, *arguments):
    """CPU seconds that a call takes."""
    return timeit(lambda: function(*arguments), timer=time.process_time, number=1)


def captured(dataset, phase, seed):
    """The problems (E_new, s2) of Eq. 6 that the paper's method meets in a learning phase."""
    problem, found = datasets.load(dataset, nlts.Config.L * phase, seed), []

    def recording(forgotten, E_old, E_new, weights, lam):
        found[:] = [(E, old.s2(E_before)) for old, E_before, E
                    in zip(forgotten, E_old, E_new, strict=True) if len(E)]
        return nlts.likelihood_matching(forgotten, E_old, E_new, weights, lam)

    agent = make_agent(with_arguments(RECIPES["both-priors"], prior=recording), problem, seed)
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])
    return found


def nudge(network, buffer, config, rng):
    """In place of training, which costs the same with any memory: all weights move a little."""
    for p in network.parameters():
        p.data += 0.01 * torch.as_tensor(rng.standard_normal(p.shape))


def phases(T, L, seed):
    """For each learning phase on Statlog: its step, and for each of GROWING the tuples that are in
    the buffer and the seconds that the phase took."""
    problem = datasets.load("statlog", T, seed)
    agents = [make_agent(replace(RECIPES[name], train=nudge, settings={"L": L}), problem, seed)
              for name in GROWING]
    steps, tuples, seconds = [], [], []
    for t, (context, rewards) in enumerate(zip(problem.contexts, problem.rewards, strict=True), 1):
        arms = [agent.act(context) for agent in agents]
        times = [clock(agent.update, context, arm, rewards[arm])
                 for agent, arm in zip(agents, arms, strict=True)]
        if t % L == 0:
            steps.append(t)
            tuples.append([len(agent.buffer.tuples) for agent in agents])
            seconds.append(times)
    return steps, tuples, seconds


def step_seconds(dim, steps, seed):
    """Seconds of a step of LinearTS with 7 arms, the median."""
    rng, agent = np.random.default_rng(seed), nlts.LinearTS(dim, 7, seed=seed)

    def step(context, reward):
        agent.update(context, agent.act(context), reward)

    return float(np.median([clock(step, rng.normal(size=dim), rng.normal())
                            for _ in range(steps)]))


def run_seconds(steps, runs, seed):
    """Seconds of whole runs on Statlog, by turns."""
    tasks = [Task("costs", "statlog", name, RECIPES[name], steps, seed=seed) for name in RUNS]
    return [[run_task(replace(task, run=run))["seconds"] for task in tasks] for run in range(runs)]


def growth(T, seconds):
    """p of seconds ~ T^p by least squares in logarithms over the last three quarters, ± standard
    error."""
    late = np.array(T) >= T[-1] / 4
    fit = linregress(np.log(T)[late], np.log(seconds)[late])
    return fit.slope, fit.stderr


def report(measured):
    """Ratios of solvers, growth with T, a step, ratios of runs."""
    ratios = {name: [one[name] / one[OURS] for one in measured["solvers"]] for name in SOLVERS}
    runs = np.median([np.divide(one, one[0]) for one in measured["run"]], 0)
    solvers = [[name, f"{1000 * np.median([one[name] for one in measured['solvers']]):.1f}",
                f"{np.median(ratio):.1f}", f"{min(ratio):.1f} to {max(ratio):.1f}"]
               for name, ratio in ratios.items()]
    found = measured["phases"]
    grown = [[name, claimed, lab.with_error(*growth(found["T"], seconds), 2), tuples[-1]]
             for name, claimed, seconds, tuples in zip(
                 GROWING, (1, 0, 0), np.transpose(found["seconds"]), np.transpose(found["tuples"]),
                 strict=True)]
    low, high = (1000 * seconds for seconds in measured["step"].values())
    return lab.page(
        lab.wrapped(f"On buffers of real runs SCS takes {np.median(ratios[SCS]):.0f} times the CPU "
                    f"time of {OURS}. A run of both-priors takes {runs[1]:.2f} times the CPU time "
                    f"of one of no-prior, one of full memory {runs[2]:.2f} times."),
        lab.text_table(["Eq. 6", "median ms", "median ratio", "range"], solvers)
        + f"\n{len(measured['solvers'])} buffers of the fifth learning phase of both-priors, "
        "g = 50",
        lab.text_table(["CPU time of a phase", "exponent of T in Sec. 3.1", "here",
                        f"tuples at T = {found['T'][-1]}"], grown)
        + "\nStatlog, arms as the agents choose them, without training; by least squares in "
        "logarithms, ± standard error",
        f"A step of LinearTS with 7 arms takes {low:.2f} ms at d = {DIMS[0]}, and {high:.2f} ms at "
        f"d = {DIMS[1]}.")


def plot(measured):
    """CPU time of a learning phase against T."""
    found = measured["phases"]
    figure, axis = lab.pyplot().subplots(figsize=(6.5, 3.8))
    for name, seconds in zip(GROWING, np.transpose(found["seconds"]), strict=True):
        axis.plot(found["T"], 1000 * seconds, markersize=4, **lab.style(name))
        axis.annotate(lab.label(name), (found["T"][-1], 1000 * seconds[-1]), (6, 0),
                      textcoords="offset points", va="center", color=lab.style(name)["color"])
    axis.set(xlabel="step T", ylabel="CPU time of a learning phase, ms", ylim=(0, None))
    axis.set_title("Statlog, without the time of training", fontsize=9)
    return {"": figure}


def files(measured):
    """The numbers, which are in no file of runs."""
    return {"costs.json": json.dumps(measured) + "\n"}
