"""Tests of nlts_beyond.py: the carried prior, Phi0 = Phi_old + m C, and the pooled noise."""
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import datasets
from lab import fast
from tests.oracles import (
    Archive,
    LinearFeatures,
    array_of,
    close,
    numbers,
    regressions,
    small_agent,
)


@st.composite
def carried_arms(draw):
    """Features and rewards of what left, old features in the buffer, their steps, last layer w."""
    E, r, _, w = draw(regressions(n=5))
    rows, steps = (draw(array_of((6, len(w)), numbers)) for _ in "12")
    return E, r, rows, steps, w


@given(data=carried_arms())
def test_carried_prior_is_its_formula(nlts, beyond, data):
    """Written out once more, with two arms: steps are taken over both, m and Phi_old from each. An
    arm of which nothing left keeps the first prior, where the buffer has no tuple of it, too."""
    E, r, rows, steps, w = data
    old, first = (nlts.first_prior(len(w), nlts.Config()) for _ in range(2))
    old.update(E, r)
    rows_new = rows + steps
    for split in (2, 6):
        priors = beyond.carried_prior([old, first], [rows[:split], rows[split:]],
                                      [rows_new[:split], rows_new[split:]], np.array([w, w]), 0.25)
        C = sum(np.outer(step, step) for step in steps) / 6
        Phi0 = old.precision + 5 * C
        rho = 5 * np.trace(C) / (np.trace(old.precision) + 5 * np.trace(C))
        carried = np.linalg.inv(Phi0) @ old.precision @ old.mu_hat
        close(priors[0][0], Phi0)
        close(priors[0][1], (1 - rho) * carried + rho * w, scale=10)
        close(priors[1][0], 0.25 * np.eye(len(w)))
        assert not priors[1][1].any()


def test_where_no_feature_moves_nothing_changes(nlts, beyond):
    """Ten phases with P = 0 and a buffer of 18: as if all 200 tuples had been kept."""
    archive = Archive(nlts, small_agent(nlts, prior=beyond.carried_prior, P=0, L=20))
    archive.advance(205)
    archive.assert_full_regression(rtol=1e-6)


def random_steps(network, buffer, config, rng):
    """A `train` in which features take steps of mean zero, whatever they are; they are skewed."""
    steps = rng.exponential(size=(30, 3)) - 1
    mixing = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.3, 0.0, 2.0]])
    network.A.data += torch.as_tensor((steps @ mixing).T)


def test_the_carried_precision_is_unbiased(nlts, beyond):
    """Against full memory, over 150 runs of three phases: the mean of each of 2 times 6 entries is
    within 4.5 sigma of the true one (a right program fails one seed in 12,000). The t-th context is
    e_t, so that its features are a column of A."""
    differences = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        network = LinearFeatures((rng.normal(size=(30, 3)) + [1, 0, -1]).T, 2)
        agent = nlts.NeuralLinearTS(network, 2, 6, beyond.carried_prior, random_steps,
                                    L=10, seed=seed)
        played = np.arange(30) % 3 == 0
        for context, arm in zip(np.eye(30), played.astype(int), strict=True):
            agent.update(context, arm, rng.normal())
        rows = agent.network.A.detach().numpy().T
        for arm, E in zip(agent.arms, (rows[~played], rows[played]), strict=True):
            difference = arm.precision - 0.25 * np.eye(3) - E.T @ E
            differences.append(difference[np.triu_indices(3)])
    differences = np.reshape(differences, (150, 12))
    assert differences.std(0).min() > 1                      # it does estimate
    sigma = differences.std(0) / np.sqrt(150)
    assert np.abs(differences.mean(0) / sigma).max() < 4.5


# Pooled noise -------------------------------------------------------------------------------------

class Ones:
    """A generator whose gammas are their shapes: then nu2 = b / a."""

    def gamma(self, a):
        return a


def arms_with(nlts, errors):
    """Posteriors of arms that were played errors[i][0] times; b has collected errors[i][1]."""
    arms = [nlts.BayesianLinearRegression(np.eye(1), [0.0], 6, 6 + res, n) for n, res in errors]
    for arm, (n, _) in zip(arms, errors, strict=True):
        arm.a = 6 + n / 2
    return arms


@given(errors=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 10 ** 6)), min_size=1),
       exponent=st.integers(-6, 6))
def test_pooled_noise_is_its_formula(nlts, beyond, errors, exponent):
    """sigma2 is a mean over the arms that were played, not over plays; and all is free of scale."""
    scale = 10.0 ** exponent
    arms = arms_with(nlts, [(0, 0), *((n, scale * res) for n, res in errors)])
    found = beyond.pooled_noise(arms, nlts.Config(), Ones())
    sigma2 = sum(2 * scale * res / n for n, res in errors) / len(errors)
    expected = [(6 * sigma2 + scale * res) / (6 + n / 2) for n, res in [(0, 0), *errors]]
    np.testing.assert_allclose(found, expected, rtol=1e-3)   # b - b0 rounds at a small scale
    assert found[0] == pytest.approx(sigma2, rel=1e-3)       # an arm that was never played


def test_pooled_noise_is_inverse_gamma(nlts, beyond):
    """Kolmogorov-Smirnov on 5,000 draws of each of three arms: fails one seed in 333."""
    errors = [(0, 0), (4, 3.0), (20, 0.5)]
    arms, rng = arms_with(nlts, errors), np.random.default_rng(1)
    draws = np.array([beyond.pooled_noise(arms, nlts.Config(), rng) for _ in range(5000)])
    sigma2 = (2 * 3.0 / 4 + 2 * 0.5 / 20) / 2
    for i, (n, res) in enumerate(errors):
        exact = stats.invgamma(6 + n / 2, scale=6 * sigma2 + res)
        assert stats.kstest(draws[:, i], exact.cdf).pvalue > 1e-3


def test_pooled_noise_is_positive_before_any_reward(nlts, beyond):
    found = beyond.pooled_noise(arms_with(nlts, [(0, 0)] * 2), nlts.Config(), Ones())
    assert (found > 0).all() and (found < 1e-200).all()


def test_first_rewards_that_are_all_zero_lock_no_arm_out(nlts, beyond):
    """40 seeds: the best arm pays like the others at first, and is found all the same."""
    plays = []
    for seed in range(40):
        rng, agent = np.random.default_rng(seed), nlts.LinearTS(2, 3, noise=beyond.pooled_noise,
                                                                seed=seed, initial_pulls=3)
        count = 0
        for t in range(150):
            context = np.append(rng.normal(), 1.0)
            arm = agent.act(context)
            paid = 0.0 if t < 9 else float(rng.random() < (0.3, 0.3, 0.8)[arm])
            agent.update(context, arm, paid)
            count += t >= 100 and arm == 2
        plays.append(count)
    assert min(plays) >= 15 and np.mean(plays) > 40


# Three poisonous meals ----------------------------------------------------------------------------

def poisonous_starts():
    """Problems in which the three initial meals, steps 1, 3 and 5, are paid with -35."""
    for seed in itertools.count():
        problem = datasets.load("mushroom", 1000, seed)
        if (problem.rewards[[1, 3, 5], 1] == -35).all():
            yield seed, problem


def meals(nlts, beyond, seed, problem):
    """How often it eats in steps 100 to 1,000."""
    network = nlts.MLP(problem.dim, 2, seed=seed)
    agent = nlts.NeuralLinearTS(network, 2, 200, beyond.carried_prior, fast.train,
                                beyond.pooled_noise, seed=seed, L=100, P=200, initial_pulls=3)
    played = []
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        played.append(agent.act(context))
        agent.update(context, played[-1], rewards[played[-1]])
    assert played[:6] == [0, 1] * 3
    return sum(played[100:])


@pytest.mark.slow
def test_three_poisonous_meals_seldom_stop_it_from_eating(nlts, beyond):
    """One start in 64 is such a one. A noise that is a mean over arms makes it rarer that eating is
    locked out, not impossible: of the first 104 such starts 13 do not eat once in steps 100 to
    1,000, and 41 with a mean over plays. Of the first 20 it is 4, and 12: the bound lies between,
    as runs on other processors differ."""
    starts = itertools.islice(poisonous_starts(), 20)
    eaten = [meals(nlts, beyond, seed, problem) for seed, problem in starts]
    assert eaten.count(0) <= 7, eaten
