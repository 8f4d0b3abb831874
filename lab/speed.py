"""What a step and a run cost. Ratios, in one process and by turns: a busy machine slows all."""
import time

import numpy as np
import torch

import datasets
import nlts
from lab import fast, runs
from lab.references import Textbook
from lab.text import Report, goal, rough, text_table

BLOCK = 50                                            # steps that are timed together
RUNS = "no-prior", "both-priors", "carried"


def speed(o):
    """Decisions against the textbook way, training against the plain loop, priors against none."""
    torch.set_num_threads(1)
    problem = datasets.load("statlog", 2000, o.seed, o.data_dir)
    blocks = 3 if o.quick else 10
    steps = o.steps or (850 if o.quick else 4000)
    seconds = {"decision": decision_seconds(problem, blocks, o.seed),
               "mini-batch": batch_seconds(problem, blocks),
               "run": run_seconds(o, steps, o.runs or (1 if o.quick else 5))}
    data = {"blocks": blocks, "steps": steps, "CPU seconds": seconds}
    return Report(speed_text(seconds, steps) + rough(o), data)


# What is measured ---------------------------------------------------------------------------------

def clock(function, *arguments):
    """CPU seconds that a call takes."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def decide(agent, problem, first, steps=BLOCK):
    """Some decisions, each with its update."""
    for context in problem.contexts[first:first + steps]:
        agent.update(context, agent.act(context), 1.0)


def untrained(dim, n_arms):
    """An agent whose learning phase never comes."""
    return nlts.NeuralLinearTS(nlts.MLP(dim, n_arms), n_arms, L=10 ** 9, initial_pulls=0)


def decision_seconds(problem, blocks, seed):
    """Seconds of a decision with its update, a block an entry."""
    late = untrained(problem.dim, 7)
    decide(late, problem, 0, 1500)
    agents = {"ours": untrained(problem.dim, 7), "late": late,
              "14 arms": untrained(problem.dim, 14),
              "textbook": Textbook(nlts.MLP(problem.dim, 7), 7, seed)}
    seconds = {name: [] for name in agents}
    for k in range(blocks):
        for name, agent in agents.items():
            seconds[name].append(clock(decide, agent, problem, BLOCK * k) / BLOCK)
    return seconds


def batch_seconds(problem, blocks):
    """Seconds of a mini-batch in training."""
    config = nlts.Config(P=100)
    network, rng = nlts.MLP(problem.dim, 7), np.random.default_rng(0)
    buffer = nlts.ReplayBuffer(700)
    for t in range(700):
        buffer.add(problem.contexts[t], t % 7, problem.rewards[t, t % 7])
    nlts.train(network, buffer, config, rng)          # torch's first steps are slow
    seconds = {"plain": [], "fast": []}
    for _ in range(blocks):
        for name, train in (("plain", nlts.train), ("fast", fast.train)):
            seconds[name].append(clock(train, network, buffer, config, rng) / config.P)
    return seconds


def run_seconds(o, steps, repeats):
    """Seconds of whole runs on Statlog with limited memory."""
    tasks = {name: runs.make_task(o, "speed", "statlog", name, steps) for name in RUNS}
    seconds = {name: [] for name in tasks}
    for k in range(repeats):
        for name, task in tasks.items():
            problem, agent, _ = runs.make_run(task | {"run": k})
            seconds[name].append(clock(runs.play, problem, agent))
    return seconds


# What is told -------------------------------------------------------------------------------------

def speed_text(seconds, steps):
    """What each costs, as a ratio, beside its goal."""
    decision, batch, run = (
        {name: float(np.median(values)) for name, values in seconds[kind].items()}
        for kind in ("decision", "mini-batch", "run"))

    def row(what, ours, ratio, least=None, most=None):
        wanted = f">= {least}" if least else f"<= {most}"
        met = ratio >= least if least else ratio <= most
        return goal(f"{what}: {ours}", wanted, f"{ratio:.2f}", met)

    ms = {name: f"{1000 * value:.2f} ms" for name, value in decision.items()}
    rows = [
        row("a decision and update, 7 arms, g = 50, textbook / ours", ms["ours"],
            decision["textbook"] / decision["ours"], least=10),
        row("with 14 arms / with 7", ms["14 arms"], decision["14 arms"] / decision["ours"],
            most=2.2),
        row("after 1,500 steps / at the start", ms["late"], decision["late"] / decision["ours"],
            most=1.3),
        row("a mini-batch, nlts.train / lab.fast.train", f"{1000 * batch['fast']:.3f} ms",
            batch["plain"] / batch["fast"], least=2),
        row(f"Statlog, {steps} steps, both-priors / no-prior", f"{run['both-priors']:.1f} s",
            run["both-priors"] / run["no-prior"], most=2),
        row(f"Statlog, {steps} steps, carried / no-prior", f"{run['carried']:.1f} s",
            run["carried"] / run["no-prior"], most=1.15),
    ]
    return text_table(["what, as a ratio: CPU time of ours", "goal", "measured", ""], rows)
