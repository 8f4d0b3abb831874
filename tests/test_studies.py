"""What our own studies measure, against closed forms."""

import numpy as np
import pytest
import torch

import datasets
import nlts
import nlts_beyond
from lab import agents, fast
from lab.options import Options
from lab.recipes import EQUAL, RECIPES
from lab.runs import make_agent
from studies import ablation, ablation_agents, calibration_agents, costs, exploration
from studies.depth_agents import DeepMLP
from studies.peers_agents import wide_network


def play(agent, problem, observer=None):
    """Let the agent play all of a problem."""
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        if observer:
            observer.before_update(agent, context, arm)
        agent.update(context, arm, rewards[arm])
    return agent


def phase_inputs(seed=0, n_arms=2, n=4, g=6):
    """Arguments of a prior: posteriors of what left, old and new features, last layer, lam."""
    rng = np.random.default_rng(seed)
    forgotten = []
    for _ in range(n_arms):
        forgotten.append(nlts.BayesianLinearRegression(np.eye(g), np.zeros(g), 6.0, 6.0))
        forgotten[-1].update(rng.normal(size=(20, g)), rng.normal(size=20))
    E_old = [rng.normal(size=(n, g)) for _ in range(n_arms)]
    E_new = [E + 0.1 * rng.normal(size=(n, g)) for E in E_old]
    return forgotten, E_old, E_new, rng.normal(size=(n_arms, g)), 1.0


# Priors to compare with ---------------------------------------------------------------------------

def test_the_printed_prior_counts_and_bounds_what_its_solver_returns():
    """s² is met on the buffer's rows, no eigenvalue of S is below 1e-5, the mean is the paper's."""
    prior = agents.PrintedPrior(solver="CLARABEL")
    forgotten, E_old, E_new, weights, lam = phase_inputs()
    for i, (Phi0, mu0) in enumerate(prior(forgotten, E_old, E_new, weights, lam)):
        S = np.linalg.inv(Phi0)
        s2 = np.einsum("ij,jk,ik->i", E_new[i], S, E_new[i])
        np.testing.assert_allclose(s2, forgotten[i].s2(E_old[i]), rtol=1e-2)
        np.testing.assert_array_equal(mu0, weights[i])
    assert prior.counts == {"solved": 2, "inaccurate": 0, "unsolved": 0}
    S = prior.match(E_new[0], np.full(4, 1e-9))       # wants an S of next to nothing
    assert np.linalg.eigvalsh(S).min() == pytest.approx(1e-5)


class IllConditioned(agents.PrintedPrior):
    """A solver that returns an S with eigenvalues from 1e-5 to 1e5."""

    def match(self, E_new, s2):
        Q = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 50)))[0]
        return (Q * np.logspace(-5, 5, 50)) @ Q.T


def test_the_printed_prior_is_one_that_a_posterior_takes():
    """Rounding in the inverse of an ill-conditioned S once ended a run of Smartphones."""
    E, old = np.eye(50), nlts.BayesianLinearRegression(np.eye(50), np.zeros(50), 6.0, 6.0)
    Phi0, mu0 = IllConditioned()([old], [E], [E], np.ones((1, 50)), 1.0)[0]
    nlts.BayesianLinearRegression(Phi0, mu0, 6.0, 6.0)
    assert np.linalg.eigvalsh(Phi0)[-1] == pytest.approx(1e5)


def test_where_the_solver_fails_phi_old_is_kept():
    """OSQP solves no semidefinite program; SCS stops after 1 iteration with an inaccurate one."""
    inputs = forgotten, _, _, weights, _ = phase_inputs()
    failing = agents.PrintedPrior(solver="OSQP")
    for (Phi0, mu0), old, w in zip(failing(*inputs), forgotten, weights, strict=True):
        np.testing.assert_array_equal(Phi0, old.precision)
        np.testing.assert_array_equal(mu0, w)
    assert failing.counts == {"solved": 0, "inaccurate": 0, "unsolved": 2}
    hasty = agents.PrintedPrior(solver="SCS", max_iters=1)
    hasty(*inputs)
    assert hasty.counts["solved"] + hasty.counts["unsolved"] == 2
    assert hasty.counts["inaccurate"] == hasty.counts["solved"]


# Calibration --------------------------------------------------------------------------------------

def calibrated(prior, steps=200):
    """Errors of each arm after the last phase, where no feature moves; the agent, and the contexts
    of each arm's plays."""
    problem, observer = datasets.load("statlog", steps, 3), calibration_agents.Calibration()
    agent = nlts.NeuralLinearTS(nlts.MLP(problem.dim, 7, seed=1), 7, 70, prior, L=50, P=0, seed=1)
    play(agent, problem, observer)
    return calibration_agents.phase_errors(agent, observer.seen), agent, observer


def test_the_old_covariance_is_full_memory_s_where_no_feature_moved():
    errors, agent, observer = calibrated(calibration_agents.kept_prior)
    assert len(errors) > 1 and len(observer.errors) > 1
    np.testing.assert_allclose(np.concatenate(errors + observer.errors), 0, atol=1e-6)
    assert observer.result(None, agent, None)["error"] < 1e-6


def test_no_prior_is_too_uncertain_by_as_much_as_was_seen():
    errors, agent, observer = calibrated(nlts.no_prior)
    expected = []
    for i, contexts in observer.seen.items():
        kept = sum(arm == i for _, arm, _ in agent.buffer.tuples)
        gone = contexts[:len(contexts) - kept]
        if len(gone) >= calibration_agents.LEAST:
            phi = nlts.last_layer_activations(agent.network, np.array(gone))
            inverse = np.linalg.inv(0.25 * np.eye(50) + phi.T @ phi)
            full = np.einsum("ij,jk,ik->i", phi, inverse, phi)
            expected.append(np.log(np.sum(phi ** 2, 1) / 0.25 / full))
    np.testing.assert_allclose(np.concatenate(errors), np.concatenate(expected), rtol=1e-6)
    assert np.concatenate(errors).mean() > 1


# Ablation -----------------------------------------------------------------------------------------

def test_counted_twice_adds_the_buffer_to_what_left():
    forgotten, E_old, _, weights, lam = phase_inputs()
    kept = ablation_agents.counted_twice(forgotten, E_old, E_old, weights, lam,
                                         prior=calibration_agents.kept_prior)
    for (Phi0, _), old, E in zip(kept, forgotten, E_old, strict=True):
        np.testing.assert_allclose(Phi0, old.precision + E.T @ E)


def test_a_mixed_prior_has_the_precision_of_one_and_the_mean_of_another():
    inputs = forgotten, E_old, E_new, weights, _ = phase_inputs()
    rows = ablation_agents.mixed(*inputs, prior=nlts.likelihood_matching,
                                 mean=ablation_agents.matched_rows)
    last = ablation_agents.mixed(*inputs, prior=calibration_agents.kept_prior, mean=nlts.mean_prior)
    for i, (Phi0, _) in enumerate(nlts.likelihood_matching(*inputs)):
        np.testing.assert_array_equal(rows[i][0], Phi0)
        np.testing.assert_allclose(E_new[i] @ rows[i][1], E_old[i] @ forgotten[i].mu_hat)    # Eq. 5
        np.testing.assert_array_equal(last[i][0], forgotten[i].precision)
        np.testing.assert_array_equal(last[i][1], weights[i])


def test_noise_not_recomputed_is_the_sum_of_what_each_tuple_adds():
    """Played by hand: all that a tuple adds to its arm's b counts, except in the step of a phase;
    what the phase itself changes does not."""
    problem, kept = datasets.load("statlog", 130, 3), ablation_agents.NoiseKept()
    agent = nlts.NeuralLinearTS(nlts.MLP(problem.dim, 7, seed=1), 7, 70, nlts.no_prior, fast.train,
                                noise=kept, L=50, P=20, seed=1, initial_pulls=0)
    b = np.full(7, 6.0)
    recomputed = False
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        np.testing.assert_allclose(kept.b, b)
        before = [one.b for one in agent.arms]
        agent.update(context, arm, rewards[arm])
        if agent.t % 50:
            b[arm] += agent.arms[arm].b - before[arm]
        else:
            recomputed |= not np.allclose([one.b for one in agent.arms], before)
    assert recomputed and not np.allclose(kept.b, [one.b for one in agent.arms])


def test_networks_of_the_studies():
    x = torch.randn(5, 100, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    plain, wide = nlts.MLP(100, 3, seed=2), wide_network(100, 3, seed=2)
    torch.testing.assert_close(wide.input, 3 * plain.input)
    assert 0.29 < float(wide.input.detach().abs().max()) <= 0.3
    deep = DeepMLP(100, 3, seed=2)
    hidden = np.maximum(x.numpy() @ deep.first.detach().numpy().T, 0)
    hidden = np.maximum(hidden @ deep.second.detach().numpy().T, 0)
    assert hidden.shape == (5, 800)
    np.testing.assert_allclose(deep(x).detach(), hidden @ deep.weights.detach().numpy().T)


VARIANTS = [(method, variant) for method, found in ablation.CHOICES.items() for variant in found
            if method not in ("linear", "printed")]


@pytest.mark.parametrize("method, variant", VARIANTS)
def test_every_variant_plays_and_differs_from_its_method(method, variant):
    """Over two phases; a variant that changes nothing would be a slip in its recipe."""
    problem, played = datasets.load("statlog", 70, 3), []
    for recipe in (RECIPES[method], ablation.CHOICES[method][variant]):
        settings = recipe.settings | {"L": 30, "P": 3}
        small = ablation.replace(recipe, settings=settings, memory=recipe.memory // 25)
        played.append(play(make_agent(small, problem, seed=1), problem))
    assert all(np.isfinite(arm.mu_hat).all() and arm.b > 0 for arm in played[1].arms)
    noise = [agent.noise(agent.arms, agent.config, np.random.default_rng(0)) for agent in played]
    assert not np.array_equal(*noise) or any(
        not np.array_equal(one.mu_hat, other.mu_hat)
        for one, other in zip(played[0].arms, played[1].arms, strict=True))


def test_how_often_to_learn_is_the_only_thing_that_changes():
    tasks = ablation.often(Options("ablation", runs=1, steps=50), "statlog")
    assert len(tasks) == 9
    for task in tasks:
        L = int(task.variant.removeprefix("L = "))
        assert task.recipe.settings == EQUAL | {"L": L, "P": 2 * L}
        assert task.recipe.arguments["noise"] is nlts_beyond.pooled_noise


# Exploration --------------------------------------------------------------------------------------

def test_recipes_of_exploration_change_the_noise_and_nothing_else():
    recipe = RECIPES["carried"]
    pooled, small = (exploration.with_noise(recipe, noise) for noise in ("pooled", "b⁰ = 0.06"))
    assert pooled.arguments == recipe.arguments | {"noise": nlts_beyond.pooled_noise}
    assert small.settings == {"b0": 0.06} and small.arguments == recipe.arguments


# Costs --------------------------------------------------------------------------------------------

def test_captured_problems_are_those_of_the_run():
    """In the first phase nothing has left the buffer: s² = |phi_old|² / lam, of 400 tuples."""
    found = costs.captured("statlog", 1, 5)
    problem = datasets.load("statlog", 400, 5)
    network = nlts.MLP(problem.dim, 7, seed=5)
    agent = play(nlts.NeuralLinearTS(network, 7, 700, L=10 ** 6, seed=5), problem)
    contexts, played, _ = agent.buffer.arrays()
    phi = nlts.last_layer_activations(network, contexts)
    expected = [(phi[played == i] ** 2).sum(1) / 0.25 for i in range(7) if (played == i).any()]
    for (_, s2), right in zip(found, expected, strict=True):
        np.testing.assert_allclose(s2, right)


def test_phases_are_timed_and_the_limited_buffer_stays_small():
    steps, tuples, seconds = costs.phases(750, 250, 0)
    assert steps == [250, 500, 750] and np.min(seconds) > 0
    assert tuples == [[250] * 3, [500] * 3, [750, 700, 700]]
