"""The open assignment: tests that a prior is valid, then the arena."""
import hashlib
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial

from . import arena
from .grading import Grader
from .sandbox import Broken
from .scripts import Name
from .testing import judge, run_tests, start
from .worker import decode, encode

SETS = ("mushroom", "adult")
RUNS, STEPS = 2, 2000                            # of each set
HYPER = {"L": 200, "P": 400}
OTHERS = {"none": "no prior", "paper": "the paper's prior"}


def draw_problems(seed):
    """The runs: rows of the data sets, drawn by the seed. A run's own seed does not betray it."""
    import datasets  # only here: the other assignments do without data
    drawn = []
    for name, run in ((name, run) for name in SETS for run in range(RUNS)):
        digest = hashlib.sha256(f"{seed} {name} {run}".encode()).digest()
        own = int.from_bytes(digest[:8], "big") >> 1
        data = datasets.load(name, STEPS, seed=own)
        drawn.append((name, own, HYPER, data.contexts, data.rewards))
    return drawn


def baseline(kind, problems):
    """{set: reward} of no prior, the paper's or the perfect one."""
    import nlts
    from lab.references import perfect_prior
    options = {"none": {"prior": nlts.no_prior}, "paper": {}, "perfect": {"make": perfect_prior}}
    return arena.earned(nlts, problems, **options[kind])


def all_baselines(problems):
    """{kind: {set: reward}}, computed side by side."""
    kinds = [*OTHERS, "perfect"]
    os.environ.setdefault("OMP_NUM_THREADS", "1")                # threads of three would fight
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        return dict(zip(kinds, pool.map(baseline, kinds, [problems] * 3), strict=True))


def remote_prior(worker, forgotten, *others):
    """The student's better_prior as a prior of ours: arguments and result go over the pipe."""
    steps = []
    arms = [Name(steps, "BayesianLinearRegression")(arm.precision, arm.mu_hat, arm.a, arm.b, arm.n)
            for arm in forgotten]
    Name(steps, "better_prior")(arms, *others)
    valid = encode([(arm.precision, arm.mu_hat) for arm in forgotten])
    reply = worker.ask({"steps": steps}, arena.SECONDS)
    words = judge(steps, [None] * len(arms) + [{"right": valid, "how": "priors"}], reply)
    if worker.usage().seconds > arena.SECONDS:
        words = f"it used more than {arena.SECONDS} seconds of CPU time"
    if words:
        raise Broken(words)
    return decode(reply["results"][-1])


class ContestGrader(Grader):
    """Tests as for other functions, then the arena: better than no prior, and than the paper's."""

    def __init__(self, name, seed, sandbox="none", borrowed=1.0, problems=None, baselines=None):
        super().__init__(name, seed, sandbox, borrowed)
        (self.part,) = self.parts
        self.problems = problems or draw_problems(seed)
        self.baselines = baselines or all_baselines(self.problems)

    def first(self, one):
        one.outcomes[self.part] = run_tests(self.tests[self.part], self.code(self.own, one))

    def second(self, one):
        valid = all(words is None for _, words in one.outcomes[self.part])
        sums, broken = self.play(one) if valid else ({}, "not run")
        for kind, other in OTHERS.items():
            for name, least in self.baselines[kind].items():
                words = f"it earns {sums[name]:g}, {other} {least:g}" if sums else broken
                better = sums and sums[name] > least
                title = f"{name}: earns more than {other}"
                one.outcomes[self.part].append((title, None if better else words))

    def play(self, one):
        """({set: reward}, ""), or ({}, why there is none)."""
        names = "better_prior BayesianLinearRegression"
        with closing(start(names, self.code(self.own, one))) as worker:
            try:
                sums = arena.earned(self.nlts, self.problems, prior=partial(remote_prior, worker))
            except (Broken, ValueError, RecursionError) as error:
                return {}, f"the run broke off: {error}"
        one.rank = arena.won_back(sums, self.baselines)
        return sums, ""
