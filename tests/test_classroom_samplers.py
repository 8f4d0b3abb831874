"""Wrong samplers fail, right ones pass; tests/classroom_samplers.py measures it in many seeds."""
import numpy as np
import pytest
from classroom_samplers import ALSO_RIGHT, RIGHT, WRONG, words_of

from classroom.comparisons import FAR, odd_average, polynomials
from classroom.scripts import best_shares
from nlts import BayesianLinearRegression, Config, LinearTS

QUICK = ("a root", "float32")                    # the others in the measurement


@pytest.mark.parametrize("name", [*QUICK, *ALSO_RIGHT])
def test_a_right_sampler_passes(name):
    assert words_of(*(RIGHT | ALSO_RIGHT)[name], seed=5) is None


@pytest.mark.parametrize("name", list(WRONG))
def test_a_wrong_sampler_fails(name):
    assert words_of(*WRONG[name], seed=5)


def test_the_samplers_are_as_many_as_promised():
    assert len(RIGHT) == 6 and len(WRONG) >= 15


def test_polynomials_have_mean_0_and_variance_1_and_do_not_depend_on_each_other():
    x = np.linspace(-1, 1, 200_001)
    values = np.array(list(polynomials(x).values()))
    assert np.allclose(values @ values.T / len(x), np.eye(len(values)), atol=1e-3)
    assert np.allclose(values.mean(1), 0, atol=1e-4)


def test_right_numbers_are_seldom_near_the_limit():
    """Averages of right draws are standard normal: over 600 draws of 1,000 the largest is about
    3.5, and FAR is 5.6."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (1_000, 600))
    assert odd_average(x[:, :4], list("abcd")) is None
    largest = max(abs(values.mean(0)).max() * 1_000 ** 0.5
                  for values in (base.reshape(x.shape) for base in polynomials(x.ravel()).values()))
    assert 3 < largest < FAR - 0.5


def test_shares_are_those_of_an_agent_that_plays():
    arms = [BayesianLinearRegression(np.eye(2), mu, 3.0, b, 9)
            for mu, b in (((0.2, 0), 1.0), ((0, 0.3), 4.0))]
    context = np.array([1.0, 0.5])
    agent = LinearTS(2, 2, seed=3)
    agent.arms, agent.config = arms, Config(initial_pulls=0)
    played = np.mean([agent.act(context) for _ in range(4_000)])
    assert abs(played - best_shares(arms, context)[1]) < 5 * 0.5 / 4_000 ** 0.5
