"""Sec. 4.2, last paragraph: a deeper network does not earn more.

Full memory with the paper's network and with 54-500-800-7 (on Adult the same hidden sizes); and the
test accuracy that a linear model and both networks reach when trained on all data.
"""
import itertools
import json
from dataclasses import replace

import numpy as np
import torch
from torch import nn

import datasets
from lab import report as lab
from lab.recipes import RECIPES
from lab.results import execute, make_runs
from lab.statistics import grouped, judge_rewards
from studies.depth_agents import WIDTHS, DeepMLP

HIDDEN = {"linear": (), "50": (50,), "500-800": WIDTHS}
NETWORKS = {"50": None, "500-800": DeepMLP}           # played, by hidden layers
PAPER = {  # what the paper quotes of others, in percent
    "covertype": {"linear": 60, "50": 60, "500-800": 68}, "adult": {"linear": 84, "50": 84}}
BATCHES, BATCH = 2000, 512                            # of the ordinary training
TRAINED_ON = 0.8                                      # of the rows; the others are the test
WORDS = {-1: "it holds, the deeper one earns less", 0: "no difference is certain",
         1: "it does not hold"}


def measure(options):
    """Rewards of full memory with both networks, and accuracies."""
    results = execute(options, [
        run for d in options.datasets for variant, network in NETWORKS.items()
        for run in make_runs(options, d, "neural-linear",
                             replace(RECIPES["neural-linear"], network=network), variant=variant)])
    accuracy = {d: accuracies(d, options.seed) for d in grouped(results, "dataset")}
    return {"runs": results, "accuracy": accuracy}


def accuracies(dataset, seed, batches=BATCHES):
    """Test accuracy of a linear model and of both networks, trained in the ordinary way: cross
    entropy, Adam, inputs standardized. {} where the data is not on this machine."""
    try:
        problem = datasets.load(dataset, seed=seed)
    except datasets.MissingData:
        return {}
    x = torch.as_tensor(problem.contexts.astype(np.float32))
    y = torch.as_tensor(problem.rewards.argmax(1))
    n = int(TRAINED_ON * len(x))                      # rows are in random order
    found = {}
    for name, hidden in HIDDEN.items():
        torch.manual_seed(seed)
        network = classifier((problem.dim, *hidden, problem.n_arms))
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
        for _ in range(batches):
            rows = torch.randint(n, (BATCH,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            best = torch.cat([network(part).argmax(1) for part in x[n:].split(10_000)])
        found[name] = float((best == y[n:]).float().mean())
    return found


def classifier(sizes):
    """A network with ReLUs between its layers; with two sizes, a linear model."""
    layers = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


# Report -------------------------------------------------------------------------------------------

def judge(results):
    """{(pair, data set): Judged}: the deeper network's reward minus the paper's."""
    return judge_rewards(results, [("neural-linear, 500-800", "neural-linear, 50")])


def report(measured):
    """Rewards and accuracies of both networks, and the paper's claim."""
    results = lab.named(measured["runs"])
    found = judge(results)
    verdicts = [f"{lab.title(d)}: {WORDS[one.sign]}." for (_, d), one in found.items()]
    return lab.page(
        lab.wrapped("The paper: a deeper network does not earn more. Here, full memory with hidden "
                    f"layers of 500 and 800 units against 50 units, {lab.runs_of(results)}:",
                    *verdicts),
        lab.rewards_table(results), lab.difference_table("reward gained", found),
        accuracy_table(measured["accuracy"]), lab.played_text(results))


def accuracy_table(accuracy):
    """Test accuracies, and those that the paper quotes."""
    rows = []
    for d, found in accuracy.items():
        if found:
            rows.append([lab.title(d), *(f"{100 * x:.1f}" for x in found.values())])
            quoted = PAPER.get(d, {})
            rows.append(["  quoted by the paper", *(quoted.get(name, "") for name in found)])
    if not rows:
        return ""
    return lab.text_table(["test accuracy, %", *HIDDEN], rows) + (
        f"\ntrained on {100 * TRAINED_ON:.0f} % of all rows with every label, {BATCHES} batches of "
        f"{BATCH}")


def claims(measured):
    """What is certain of the paper's claim."""
    found = judge(lab.named(measured["runs"])).values()
    sets = f"{len(PAPER)} of {len(PAPER)} data sets"
    yield ("a deeper network does not earn more", "Sec. 4.2", sets,
           {"": [-one.sign for one in found]}, max((one.runs for one in found), default=0))


def files(measured):
    """Accuracies, which are in no file of runs."""
    return {"depth.json": json.dumps(measured["accuracy"]) + "\n"}
