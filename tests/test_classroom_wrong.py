"""Mistakes lose points, in any seed, and right samplers keep theirs; the versions are data."""
import ast
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from classroom_students import first_failure

from classroom import catalogue
from classroom.catalogue import HOME, Part
from classroom.comparisons import odd_draws
from classroom.source import definitions
from classroom.testing import record
from classroom.worker import load

HERE = Path(__file__).parent
WRONG = tomllib.loads((HERE / "classroom_wrong.toml").read_text(encoding="utf-8"))
SAMPLERS = tomllib.loads((HERE / "classroom_samplers.toml").read_text(encoding="utf-8"))
SAMPLE = "BayesianLinearRegression.sample"


def text_with(function, right, wrong):
    """The reference of an assignment with one mistake."""
    text = catalogue.reference(HOME[function])
    inside = ast.get_source_segment(text, definitions(text)[function])
    docstring = ast.get_source_segment(text, definitions(text)[function].body[0])
    code = inside.replace(docstring, "")
    assert right in code, (function, right)
    return text.replace(inside, code.replace(right, wrong, 1))


def text_of_sampler(draw):
    text = catalogue.reference("thompson")
    inside = ast.get_source_segment(text, definitions(text)[SAMPLE])
    lines = ["def sample(self, nu2, rng):", "g, root = len(self.mu_hat), self.root",
             "if kept and len(kept[0]) != g:", "    kept.clear()", draw,
             "return self.mu_hat + np.sqrt(nu2) * x"]
    return text.replace(inside, "\n        ".join(lines)) + "\nkept = []\n"


@cache
def recorded(function, seed):
    nlts = load(catalogue.reference(HOME[function]), "nlts_reference")
    return record(Part(function, 1.0), nlts, seed)


def failures(function, text, seeds):
    return [first_failure(text, recorded(function, seed)) for seed in seeds]


def once_and_always(versions, many=30):
    """Each version with one seed, and with many as a slow test."""
    return [pytest.param(*version, 1) for version in versions] + [
        pytest.param(*version, many, marks=pytest.mark.slow) for version in versions]


@pytest.mark.parametrize("function, right, wrong, seeds", once_and_always(
    [(function, *change) for function in WRONG for change in WRONG[function]]))
def test_each_mistake_loses_points(function, right, wrong, seeds):
    assert all(failures(function, text_with(function, right, wrong), range(seeds)))


def test_the_versions_are_as_many_as_promised():
    assert set(WRONG) == set(HOME) and all(len(WRONG[name]) >= 6 for name in WRONG)
    assert len(SAMPLERS["wrong"]) >= 25 and len(SAMPLERS["right"]) == 6


@pytest.mark.parametrize("draw, seeds", once_and_always(
    [(draw,) for draw in SAMPLERS["wrong"].values()]))
def test_each_wrong_sampler_loses_points(draw, seeds):
    assert all(failures(SAMPLE, text_of_sampler(draw), range(seeds)))


@pytest.mark.parametrize("draw, seeds", once_and_always(
    [(draw,) for draw in SAMPLERS["right"].values()], 50))
def test_each_right_sampler_keeps_its_points(draw, seeds):
    assert not any(failures(SAMPLE, text_of_sampler(draw), range(seeds)))


def test_draws_that_are_right_pass_and_each_kind_of_dependence_is_seen():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (10_000, 3))
    assert odd_draws(x) is None
    three = x.copy()
    three[:, 2] = abs(three[:, 2]) * np.sign(three[:, 0] * three[:, 1])
    late = x.copy()
    late[8:, 0] = np.where(rng.random(9992) < 0.1, late[:-8, 1], late[8:, 0])
    assert "numbers (0, 1, 2) depend" in odd_draws(three)
    assert "8 before" in odd_draws(late)
    assert "few different" in odd_draws(np.round(x * 50) / 50)
    assert odd_draws(np.full((10_000, 3), np.nan))
