"""The open assignment: tests that a prior is valid, then the arena."""
from functools import partial

import numpy as np

from . import arena, source
from .catalogue import ROOT
from .grading import Grader
from .sandbox import Broken
from .testing import judge
from .worker import encode

SETS = ("mushroom", "adult")
RUNS, STEPS = 2, 2000                            # of each set
HYPER = {"L": 200, "P": 400}
OTHERS = {"none": "no prior", "paper": "the paper's prior"}
TIMES = ("`python check.py --arena` takes about ten seconds. In a clone of the project `python "
         "experiments.py equal --datasets mushroom,adult --prior better_prior.py` takes about 40 "
         "minutes on two cores, and 4 minutes with `--runs 5`.")


def draw_problems(seed):
    """The runs: rows of the data sets, drawn by the seed."""
    import datasets  # only here: the other assignments do without data
    drawn = []
    for name, own in ((name, seed + run) for name in SETS for run in range(RUNS)):
        data = datasets.load(name, STEPS, seed=own)
        drawn.append((name, own, HYPER, data.contexts, data.rewards))
    return drawn


def baselines_of(problems):
    """{kind: {set: reward}} of no prior, the paper's and the perfect one."""
    import nlts
    from lab.recipes import RECIPES
    options = {"none": {"prior": nlts.no_prior}, "paper": {},
               "perfect": {"make": RECIPES["perfect-prior"].agent}}
    return {kind: arena.earned(nlts, problems, **options[kind]) for kind in options}


def remote_prior(worker, forgotten, *others):
    """The student's better_prior as a prior of ours: arguments and result go over the pipe."""
    arms = [(arm.precision, arm.mu_hat, arm.a, arm.b, arm.n) for arm in forgotten]
    reply = worker.ask({"case": "play_prior", "told": encode([arms, *others])})
    valid = {"right": encode([arm[:2] for arm in arms]), "how": "priors"}
    if failure := judge([["better_prior", valid]], reply):
        raise Broken(failure)
    return [(np.array(Phi0), np.array(mu0)) for Phi0, mu0 in reply["results"][-1]]


class ContestGrader(Grader):
    """Tests as for other functions, then the arena: better than no prior, and than the paper's."""

    def __init__(self, name, seed, sandbox, problems=None, baselines=None):
        super().__init__(name, seed, sandbox)
        (self.part,) = self.parts
        self.problems = problems or draw_problems(seed)
        self.baselines = baselines or baselines_of(self.problems)

    def second(self, submission):
        """The arena, for a prior that is valid."""
        outcomes = submission.outcomes[self.part]
        sums, broken = {}, "not run"
        if all(failure is None for _, failure in outcomes):
            try:
                with self.worker(submission) as worker:
                    prior = partial(remote_prior, worker)
                    sums = arena.earned(self.nlts, self.problems, prior=prior)
                submission.rank = arena.won_back(sums, self.baselines)
            except (Broken, ValueError) as error:
                broken = f"the run broke off: {error}"
        for kind, other in OTHERS.items():
            for name, least in self.baselines[kind].items():
                failure = f"it earns {sums[name]:g}, {other} {least:g}" if sums else broken
                better = sums and sums[name] > least
                outcomes.append((f"{name}: earns more than {other}", None if better else failure))

    def copies(self, submission):
        """A copy of the carried prior, too, which is beyond the paper and ours."""
        beyond = (ROOT / "nlts_beyond.py").read_text(encoding="utf-8")
        beyond = beyond.replace("def carried_prior(", "def better_prior(")
        return super().copies(submission) or source.copies(submission.source, beyond,
                                                           ["better_prior"])
