"""Grading the open assignment: the student's prior in its own process, our agent around it."""
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import nlts

from . import arena
from .grading import Grader
from .sandbox import Broken
from .testing import error_text
from .worker import decode, encode

SETS = ("mushroom", "adult")
RUNS, STEPS = 2, 2000                            # of each set
HYPER = {"L": 200, "P": 400}
OTHERS = {"none": "no prior", "paper": "the paper's prior"}


def draw_problems(seed):
    """The runs: rows of the data sets, drawn by the seed."""
    import datasets  # only here: the other assignments do without data
    drawn = []
    for name, run in ((name, run) for name in SETS for run in range(RUNS)):
        problem = datasets.load(name, STEPS, seed=seed + run)
        drawn.append({"set": name, "seed": seed + run, "hyper": HYPER,
                      "contexts": problem.contexts, "rewards": problem.rewards})
    return drawn


def baseline(kind, problems):
    """{set: reward} of no prior, the paper's or the perfect one."""
    from lab.references import perfect_prior
    options = {"none": {"prior": nlts.no_prior}, "paper": {}, "perfect": {"make": perfect_prior}}
    return arena.earned(nlts, problems, float("inf"), **options[kind])


def all_baselines(problems):
    """{kind: {set: reward}}, computed side by side if there is much to compute."""
    kinds = [*OTHERS, "perfect"]
    if len(problems) == 1:
        return {kind: baseline(kind, problems) for kind in kinds}
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        return dict(zip(kinds, pool.map(baseline, kinds, [problems] * 3), strict=True))


def judge(sums, baselines, broken=None):
    """[(title, None or words)]: better than no prior, and than the paper's, on each set."""
    outcomes = []
    for kind, other in OTHERS.items():
        for name, least in baselines[kind].items():
            words = broken
            if not broken and sums[name] <= least:
                words = f"it earns {sums[name]:g}, {other} {least:g}"
            outcomes.append((f"{name}: earns more than {other}", words))
    return outcomes


def remote_prior(worker, end):
    """The student's better_prior as a function: arguments and priors go over the pipe."""
    def call(path, handle, *args):
        return {"path": path, "as": handle, "args": encode(args), "kwargs": {}}

    def prior(left, E_old, E_new, weights, lam):
        steps = [call("BayesianLinearRegression", f"left{i}", arm.precision, arm.mu_hat, arm.a,
                      arm.b, arm.n) for i, arm in enumerate(left)]
        names = [{"name": f"left{i}"} for i in range(len(left))]
        steps.append(call("better_prior", "priors", names, E_old, E_new, weights, lam))
        reply = worker.ask({"steps": steps}, max(end - time.monotonic(), 0.1))
        if "failed" in reply:
            raise Broken(error_text(reply))
        try:
            pairs = decode(reply["results"][-1])
            return [(np.array(Phi0, float), np.array(mu0, float)) for Phi0, mu0 in pairs]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise Broken("better_prior did not return pairs (Phi0, mu0)") from error
    return prior


class ContestGrader(Grader):
    """Tests as for other functions, then the arena."""

    def __init__(self, text, parts, closed, seed, *options, problems=None):
        super().__init__(text, parts, closed, seed, *options)
        self.problems = problems or draw_problems(seed)
        self.baselines = all_baselines(self.problems)

    def grade_part(self, part, result):
        outcomes = super().grade_part(part, result)
        if any(words for _, words in outcomes):
            return outcomes + judge(None, self.baselines, "not run")
        worker = self.start(result.submission, part)
        try:
            prior = remote_prior(worker, time.monotonic() + arena.SECONDS)
            sums = arena.earned(nlts, self.problems, prior=prior)
        except (Broken, TimeoutError, ValueError) as error:
            return outcomes + judge(None, self.baselines, f"the run broke off: {error}")
        finally:
            worker.close()
        result.rank = arena.won_back(sums, self.baselines)
        return outcomes + judge(sums, self.baselines)
