"""What a step, a learning phase and a run cost.

Ratios, in one process and by turns: a busy machine slows all.
"""
import time

import numpy as np
import torch

import datasets
import nlts
import nlts_beyond
from lab import fast, runs
from lab.recipes import MEMORY
from lab.references import Refactorized, Textbook
from lab.report import text_table

BLOCK = 50                                            # decisions that are timed together
RUNS = "no-prior", "both-priors", "carried"
DIMS = 50, 117, 389, 562                              # hidden units, Mushroom, Census, Smartphones
INPUTS = 9, 561                                       # Statlog, Smartphones
ARMS = 7


def measure(o):
    """CPU seconds of steps and of runs."""
    return runs.read_once(o, seconds)


def seconds(o):
    """The measurements as plain data."""
    torch.set_num_threads(1)
    blocks = 3 if o.quick else 10
    return {"decision": decision_seconds(o.seed, blocks),
            "linear": {str(dim): linear_seconds(dim, o.seed, blocks) for dim in DIMS},
            "phase": {str(dim): phase_seconds(dim, o.seed, blocks // 3) for dim in INPUTS},
            "run": run_seconds(o)}


def clock(function, *arguments):
    """CPU seconds that a call takes."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def decision_seconds(seed, blocks):
    """Seconds of a decision with its update, without learning phases: one number per block."""
    dim = 9                                           # of Statlog
    agents = {"ours": nlts.NeuralLinearTS(nlts.MLP(dim, ARMS), ARMS, L=10 ** 9, initial_pulls=0),
              "textbook": Textbook(nlts.MLP(dim, ARMS), ARMS, seed)}
    problems = [datasets.load("statlog", BLOCK, seed + k) for k in range(blocks)]
    return by_turns(agents, problems)


def linear_seconds(dim, seed, blocks):
    """Seconds of a step of LinearTS, and of the same with a factorization at each update."""
    agents = {"ours": nlts.LinearTS(dim, ARMS, initial_pulls=0, seed=seed),
              "factorized": Refactorized(dim, ARMS, seed)}
    rng, problems = np.random.default_rng(seed), []
    for _ in range(blocks):
        contexts, rewards = rng.normal(size=(BLOCK, dim)), rng.normal(size=(BLOCK, ARMS))
        problems.append(datasets.Problem("made up", contexts, rewards, rewards.max(1)))
    return by_turns(agents, problems)


def phase_seconds(dim, seed, repeats):
    """Seconds of a learning phase of our prior with the default P, by two ways of training."""
    rng, found = np.random.default_rng(seed), {"nlts.train": [], "lab/fast.py": []}
    for train, times in zip((nlts.train, fast.train), found.values(), strict=True):
        agent = nlts.NeuralLinearTS(nlts.MLP(dim, ARMS), ARMS, MEMORY * ARMS,
                                    nlts_beyond.carried_prior, train)
        for t, context in enumerate(rng.normal(size=(MEMORY * ARMS // 2, dim))):
            agent.buffer.add(context, t % ARMS, context[0])
            agent.arms[t % ARMS].update(agent.phi(context), context[0])
        agent.learn()                                 # torch's first phase is slower
        times += [clock(agent.learn) for _ in range(repeats)]
    return found


def by_turns(agents, problems):
    """Seconds per step of each agent: one number per problem."""
    found = {name: [] for name in agents}
    for problem in problems:
        for name, agent in agents.items():
            found[name].append(clock(runs.play, problem, agent) / len(problem))
    return found


def run_seconds(o):
    """Seconds of whole runs on Statlog with limited memory."""
    tasks = {name: runs.make_task(o, "statlog", name) for name in RUNS}
    found = {name: [] for name in tasks}
    for k in range(o.runs):
        for name, task in tasks.items():
            problem, agent = runs.make_run(runs.replace(task, run=k))
            found[name].append(clock(runs.play, problem, agent))
    return found


def tell(data):
    """Medians of CPU times, and their ratios."""
    def row(what, mine, other, unit):
        ours, theirs, scale = np.median(mine), np.median(other), {"ms": 1000, "s": 1}[unit]
        return [what, f"{scale * ours:.2f} {unit}", f"{scale * theirs:.2f} {unit}",
                f"{theirs / ours:.2f}"]

    decision, run, steps = data["decision"], data["run"], data["options"]["steps"]
    rows = [row("neural-linear step, 7 arms, g = 50; the textbook way", decision["ours"],
                decision["textbook"], "ms")]
    rows += [row(f"LinearTS step, 7 arms, d = {dim}; factorizing at each update", own["ours"],
                 own["factorized"], "ms") for dim, own in data["linear"].items()]
    rows += [row(f"learning phase, P = {nlts.Config.P}, {dim} inputs; with lab/fast.py",
                 own["nlts.train"], own["lab/fast.py"], "s") for dim, own in data["phase"].items()]
    rows += [row(f"Statlog, {steps} steps, no-prior; {name}", run["no-prior"], run[name], "s")
             for name in RUNS[1:]]
    return text_table(["what; compared with", "CPU time", "of the other", "ratio"], rows) + (
        "\nmedians; a step is a decision and its update, without learning phases")
