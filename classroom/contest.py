"""Grading the open assignment: the student's prior in its own process, our agent around it."""
import time

import numpy as np

from . import arena
from .compare import error_text
from .grading import Grader
from .runner import Broken
from .testing import Unloadable, close
from .worker import decode, encode


def remote_prior(worker, end):
    """The student's better_prior as a function: arguments and priors go over the pipe."""
    def prior(left, E_old, E_new, weights, lam):
        steps = []
        for i, old in enumerate(left):
            state = [old.precision, old.mu_hat, old.a, old.b, old.n]
            steps.append({"do": "call", "on": None, "what": "BayesianLinearRegression",
                          "as": f"left{i}", "args": [encode(x) for x in state], "kwargs": {}})
        handles = [{"handle": f"left{i}"} for i in range(len(left))]
        given = [handles, encode(list(E_old)), encode(list(E_new)), encode(weights), lam]
        steps.append({"do": "call", "on": None, "what": "better_prior", "as": "priors",
                      "args": given, "kwargs": {}})
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

    def __init__(self, name, seed, sandbox="none", problems=None):
        super().__init__(name, seed, sandbox)
        self.problems = problems or arena.draw_problems(seed)
        self.baselines = arena.all_baselines(self.problems)
        best = {name: base["none"] for name, base in self.baselines.items()}
        self.arena_titles = [title for title, _ in arena.judge(best, self.baselines)]

    def titles(self, part):
        return super().titles(part) + self.arena_titles

    def grade_part(self, submission, part, result):
        outcomes = super().grade_part(submission, part, result)
        if any(words for _, words in outcomes):
            return outcomes + [(title, "not run") for title in self.arena_titles]
        try:
            sums = self.compete(submission, part, result)
        except (Broken, Unloadable, arena.Late, ValueError) as error:
            words = f"the run broke off: {error}"
            return outcomes + [(title, words) for title in self.arena_titles]
        result.rank = arena.won_back(sums, self.baselines)
        return outcomes + arena.judge(sums, self.baselines)

    def compete(self, submission, part, result):
        """What the student's prior earns."""
        import nlts
        worker = self.settings[part].start(submission.files, submission.main, submission.source)
        try:
            prior = remote_prior(worker, time.monotonic() + arena.SECONDS)
            return arena.earned(nlts, prior, self.problems)
        finally:
            close(worker, result.log)
