"""What a step and a run cost. Ratios, in one process and by turns: a busy machine slows all."""
import time

import numpy as np
import torch

import datasets
import nlts
from lab import runs
from lab.references import Textbook
from lab.text import Report, goal, rough, text_table

BLOCK = 50                                            # decisions that are timed together
RUNS = "no-prior", "both-priors", "carried"


def speed(o):
    """Decisions against the textbook way, runs with a prior against runs without."""
    torch.set_num_threads(1)
    steps = o.steps or (850 if o.quick else 4000)
    decision = decision_seconds(o.seed, 3 if o.quick else 10)
    run = run_seconds(o, steps, o.runs or (1 if o.quick else 5))
    data = {"steps": steps, "CPU seconds": {"decision": decision, "run": run}}
    return Report(speed_text(decision, run, steps) + rough(o), data)


def clock(function, *arguments):
    """CPU seconds that a call takes."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def decision_seconds(seed, blocks):
    """Seconds of a decision with its update, without learning phases, a block an entry."""
    dim, N = 9, 7                                     # of Statlog
    agents = {"ours": nlts.NeuralLinearTS(nlts.MLP(dim, N), N, L=10 ** 9, initial_pulls=0),
              "textbook": Textbook(nlts.MLP(dim, N), N, seed)}
    seconds = {name: [] for name in agents}
    for k in range(blocks):
        problem = datasets.load("statlog", BLOCK, seed + k)
        for name, agent in agents.items():
            seconds[name].append(clock(runs.play, problem, agent) / BLOCK)
    return seconds


def run_seconds(o, steps, repeats):
    """Seconds of whole runs on Statlog with limited memory."""
    tasks = {name: runs.make_task(o, "speed", "statlog", name, steps) for name in RUNS}
    seconds = {name: [] for name in tasks}
    for k in range(repeats):
        for name, task in tasks.items():
            problem, agent = runs.make_run(task | {"run": k})
            seconds[name].append(clock(runs.play, problem, agent))
    return seconds


def speed_text(decision, run, steps):
    """What each costs, as a ratio of medians, beside its goal."""
    ours, textbook = np.median(decision["ours"]), np.median(decision["textbook"])
    none, both, carried = (np.median(run[name]) for name in RUNS)
    rows = [
        goal(f"a decision and update, 7 arms, g = 50, textbook / ours: {1000 * ours:.2f} ms",
             ">= 10", f"{textbook / ours:.2f}", textbook / ours >= 10),
        goal(f"Statlog, {steps} steps, both-priors / no-prior: {both:.1f} s",
             "<= 2", f"{both / none:.2f}", both / none <= 2),
        goal(f"Statlog, {steps} steps, carried / no-prior: {carried:.1f} s",
             "<= 1.15", f"{carried / none:.2f}", carried / none <= 1.15),
    ]
    return text_table(["what, as a ratio: CPU time of ours", "goal", "measured", ""], rows)
