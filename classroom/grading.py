"""Grading: each function alone, by scripts that the reference has run before any student's code."""
import ast
import multiprocessing
import os
import secrets
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import PurePosixPath

from . import arena, source
from .cases import Name, build_tests
from .catalogue import ALL, Part, reference, sealed
from .sandbox import Broken, Limits
from .submissions import Submission, printable, text_of
from .testing import Unloadable, judge, run_tests, start
from .worker import decode, encode, load


class Grader:
    """Everything that grading needs, read once: tests, answers, and what the sandbox may see."""

    def __init__(self, name, seed, sandbox="none"):
        self.parts, self.text = list(ALL[name]["parts"]), reference(name)
        self.limits = Limits(ALL[name]["seconds"], sandbox=sandbox)
        self.nlts = load(self.text, "nlts_reference")
        self.tests = {part: build_tests(part.function, self.nlts, seed) for part in self.parts}
        self.given = {}
        for part in self.parts:                      # what is optional helps with nothing else
            hidden = [one.function for one in self.parts if one.optional and not part.optional]
            self.given[part] = source.blank(self.text, [part.function, *hidden])

    @property
    def points(self):
        return round(sum(part.points for part in self.parts if not part.optional), 2)

    def try_out(self):
        """ValueError unless the reference itself gets full marks here: the sandbox works."""
        one = Submission("reference", source=self.text)
        for part in self.tests:
            for _, words in Grader.grade_part(self, part, one):
                if words:
                    raise ValueError(f"the sandbox does not work here: {words}")

    def code(self, part, one):
        """What a worker gets for this function, as `start` takes it."""
        return one.files, one.source, self.given[part], self.limits

    def grade_part(self, part, one):
        """The outcomes of one function."""
        return run_tests(self.tests[part], *self.code(part, one))

    def grade(self, one):
        """The submission with its outcomes and scores, whatever is in it."""
        for part in self.parts:
            try:
                outcomes = None if one.problem else self.grade_part(part, one)
            except Unloadable as error:
                one.problem = str(error)
            except Exception as error:                           # the others are graded, still
                one.problem = f"the grader failed, look into it: {error!r}"
            one.outcomes[part] = [("all tests", one.problem)] if one.problem else outcomes
            right = [words is None for _, words in one.outcomes[part]]
            one.scores[part] = round(part.points * sum(right) / len(right), 2)
        return one

    def grade_all(self, submissions, jobs):
        """The submissions in their order, graded, told as they come."""
        results = []
        with ThreadPoolExecutor(jobs) as pool:
            for one in pool.map(self.grade, submissions):
                results.append(one)
                print(f"{len(results)}/{len(submissions)} {one.id}: {one.points:g} of "
                      f"{self.points:g} points. {printable(one.problem)}")
        return results


# Hunts --------------------------------------------------------------------------------------------

ROUNDS = 2                 # runs of a student's test on the bug, and as many on the right program
PYTEST = ["test_bug.py", "--rootdir", ".", "-p", "no:cacheprovider", "--noconftest",
          "--import-mode=append", "-c", os.devnull]


def disguised(text):
    """The same program, and pytest, with code objects of other bytes each time."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body[:0] = ast.parse(f"_unused = {secrets.randbits(30)}").body
    return f"import pytest\n{ast.unparse(tree)}"


class HuntGrader(Grader):
    """Grades the mended function, and the student's test on the bug and on the right program."""

    def __init__(self, name, seed, sandbox="none"):
        super().__init__(name, seed, sandbox)
        self.parts.append(Part("test_bug", 0.5))
        self.bug = sealed(name)

    def grade_part(self, part, one):
        if part.function != "test_bug":
            outcomes = super().grade_part(part, one)
            wrong = [words for _, words in outcomes if words]
            return [("the function is mended", wrong[0] if wrong else None)]     # all or nothing
        try:
            words = self.grade_test(one)
        except (Broken, ValueError) as error:
            words = str(error)
        return [("test_bug.py fails on the bug and passes on the right program", words)]

    def grade_test(self, one):
        """None if the test tells both programs apart, every time and in any order; else words."""
        path = str(PurePosixPath(one.main).with_name("test_bug.py"))
        if path not in one.files:
            return f"there is no test_bug.py beside {one.main}"
        text = text_of(path, one.files[path])
        files = one.files | {"test_bug.py": text.encode()}
        del files[one.main]                                      # it is not what is tested
        steps = []
        Name(steps, "pytest").main(PYTEST)
        runs = [True, False] * ROUNDS
        secrets.SystemRandom().shuffle(runs)
        for has_bug in runs:
            program = disguised(self.bug if has_bug else self.text)
            with closing(start(f"pytest {text}", files, "", program, self.limits)) as worker:
                codes = worker.ask({"steps": steps}).get("results")
            if codes not in ([0], [1]):
                return "pytest cannot run it"
            if codes != [has_bug]:
                return "it passes on the bug" if has_bug else "it fails on the right program"
        return None


# The open assignment ------------------------------------------------------------------------------

SETS = ("mushroom", "adult")
RUNS, STEPS = 2, 2000                            # of each set
HYPER = {"L": 200, "P": 400}
OTHERS = {"none": "no prior", "paper": "the paper's prior"}


def draw_problems(seed):
    """The runs: rows of the data sets, drawn by the seed."""
    import datasets  # only here: the other assignments do without data
    drawn = []
    for name, run in ((name, run) for name in SETS for run in range(RUNS)):
        data = datasets.load(name, STEPS, seed=seed + run)
        drawn.append((name, seed + run, HYPER, data.contexts, data.rewards))
    return drawn


def baseline(kind, problems):
    """{set: reward} of no prior, the paper's or the perfect one."""
    import nlts
    from lab.references import perfect_prior
    options = {"none": {"prior": nlts.no_prior}, "paper": {}, "perfect": {"make": perfect_prior}}
    return arena.earned(nlts, problems, float("inf"), **options[kind])


def all_baselines(problems):
    """{kind: {set: reward}}, computed side by side."""
    kinds = [*OTHERS, "perfect"]
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        return dict(zip(kinds, pool.map(baseline, kinds, [problems] * 3), strict=True))


def remote_prior(worker, left, *others):
    """The student's better_prior as a prior of ours: arguments and result go over the pipe."""
    steps = []
    arms = [Name(steps, "BayesianLinearRegression")(arm.precision, arm.mu_hat, arm.a, arm.b, arm.n)
            for arm in left]
    Name(steps, "better_prior")(arms, *others)
    valid = encode([(arm.precision, arm.mu_hat) for arm in left])
    reply = worker.ask({"steps": steps}, arena.SECONDS)
    words = judge(steps, [None] * len(arms) + [{"right": valid, "how": "priors"}], reply)
    if words:
        raise Broken(words)
    return decode(reply["results"][-1])


class ContestGrader(Grader):
    """Tests as for other functions, then the arena: better than no prior, and than the paper's."""

    def __init__(self, name, seed, sandbox="none", problems=None):
        super().__init__(name, seed, sandbox)
        self.problems = problems or draw_problems(seed)
        self.baselines = all_baselines(self.problems)

    def grade_part(self, part, one):
        outcomes, sums, broken = super().grade_part(part, one), {}, "not run"
        if all(words is None for _, words in outcomes):
            names = "better_prior BayesianLinearRegression"
            with closing(start(names, *self.code(part, one))) as worker:
                try:
                    prior = partial(remote_prior, worker)
                    sums = arena.earned(self.nlts, self.problems, prior=prior)
                    one.rank = arena.won_back(sums, self.baselines)
                except (Broken, TimeoutError, ValueError, RecursionError) as error:
                    broken = f"the run broke off: {error}"
        for kind, other in OTHERS.items():
            for name, least in self.baselines[kind].items():
                words = f"it earns {sums[name]:g}, {other} {least:g}" if one.rank else broken
                better = one.rank and sums[name] > least
                outcomes.append((f"{name}: earns more than {other}", None if better else words))
        return outcomes
