"""Planted bugs: a check that cannot fail shows nothing. Each of these must be noticed.

A bug is one line of nlts.py or nlts_beyond.py replaced by a wrong one. The broken source is
imported as a module of its own and given to the check, which must fail.
"""
import types
from pathlib import Path

import pytest
import test_agent
import test_beyond
import test_errors

import test_nlts

HERE = Path(__file__).resolve().parent.parent
FAILS = AssertionError, RuntimeError, pytest.fail.Exception  # the last: nothing was raised
SEEDS = 10                                                   # that a property is tried on


def plays_are_counted(nlts):
    test_agent.test_a_counts_the_plays_of_its_arm_always(nlts, "no_prior")


def an_interrupted_update_is_whole(nlts):
    test_errors.test_an_interrupt_at_any_line_of_update_leaves_the_tuple_in_all_or_in_none(nlts, 24)


def a_failed_phase_is_undone(nlts):
    options = {"train": test_errors.train_breaks}
    test_errors.test_a_phase_that_fails_leaves_the_agent_as_it_was(nlts, options, "train")


# name: the line, the line with the bug, the check that must fail
NLTS = {
    "squared nu": (
        "np.sqrt(nu2) * (self.root @ z)", "nu2 * (self.root @ z)",
        test_nlts.test_sampler_against_inverse_gamma_and_student_t),
    "precision for covariance": (
        "np.sqrt(nu2) * (self.root @ z)", "np.sqrt(nu2) * np.linalg.solve(self.root.T, z)",
        test_nlts.test_known_noise_is_sampled_as_printed),
    "root transposed": (
        "np.sqrt(nu2) * (self.root @ z)", "np.sqrt(nu2) * (self.root.T @ z)",
        test_nlts.test_known_noise_is_sampled_as_printed),
    "gamma for inverse gamma": (
        "[arm.b / rng.gamma(arm.a) for", "[rng.gamma(arm.a) / arm.b for",
        test_nlts.test_sampler_against_inverse_gamma_and_student_t),
    "prior mean ignored": (
        "mu_hat = root @ (root.T @ (self.Phi0 @ self.mu0 + f))", "mu_hat = root @ (root.T @ f)",
        test_nlts.test_sequential_is_batch_is_shuffled_is_printed),
    "b of the residuals after": (
        "b = self.b + max(error_before @ error_after", "b = self.b + max(error_after @ error_after",
        test_nlts.test_b_grows_by_the_squared_prediction_error),
    "a counts a row of rows once": (
        "a = self.a + len(r) / 2", "a = self.a + 1 / 2",
        test_nlts.test_sequential_is_batch_is_shuffled_is_printed),
    "the buffer counts twice": (
        "Phi_old = self.precision - E.T @ E", "Phi_old = self.precision",
        test_nlts.test_without_is_the_posterior_of_the_other_tuples),
    "the buffer's rewards count twice": (
        "self.Phi0 @ self.mu0 + self.f - E.T @ r)", "self.Phi0 @ self.mu0 + self.f)",
        test_nlts.test_taking_out_and_putting_back_is_the_identity),
    "b taken out with one mean": (
        "self.b - error_before @ error_after", "self.b - error_before @ error_before",
        test_nlts.test_taking_out_and_putting_back_is_the_identity),
    "shared prior": (
        "return np.array(x, dtype=float)", "return np.asarray(x, dtype=float)",
        test_nlts.test_a_posterior_shares_nothing_with_its_prior_or_its_rows),
    "all arms trained": (
        "D[torch.arange(config.batch), torch.as_tensor(arms[rows])]", "D.mean(1)",
        test_nlts.test_train_differentiates_only_the_played_arm),
    "first tuple of any arm evicted": (
        "loser = arm if arm in arms else np.bincount(arms).argmax()", "loser = arms[0]",
        test_nlts.test_a_full_buffer_loses_the_first_tuple_of_the_same_arm),
    "newest evicted": (
        "del tuples[arms.index(loser)]",
        "del tuples[len(arms) - 1 - arms[::-1].index(loser)]",
        test_nlts.test_a_full_buffer_loses_the_first_tuple_of_the_same_arm),
    "evicted before it is refused": (
        "reward = float(_array(\"reward\", reward, ()))", "reward = reward",
        test_errors.test_buffer_names_bad_input),
    "a bias is looked for once": (
        "if agent.t % agent.config.L == 0:", "if agent.t == 0:",
        test_errors.test_a_bias_that_is_trained_away_from_zero_is_told_after_the_phase),
    "one tuple too many": (
        "if len(tuples) == self.capacity:", "if len(tuples) - 1 == self.capacity:",
        test_nlts.test_a_full_buffer_loses_the_first_tuple_of_the_same_arm),
    "s for s2": (
        "s2 = old.variance(E_old[i])", "s2 = np.sqrt(old.variance(E_old[i]))",
        test_agent.test_the_papers_prior_reproduces_s2_where_it_can),
    "s2 of the new features": (
        "s2 = old.variance(E_old[i])", "s2 = old.variance(E_new[i])",
        test_agent.test_the_papers_prior_is_eq_6_and_the_last_layer),
    "covariance for precision": (
        "Phi0 = np.linalg.inv(match(E_new[i], s2))", "Phi0 = match(E_new[i], s2)",
        test_agent.test_the_papers_prior_reproduces_s2_where_it_can),
    "appendix C transposed": (
        "Phi0 = A @ Phi_old @ A.T", "Phi0 = A.T @ Phi_old @ A",
        test_nlts.test_analytical_prior_solves_both_matching_equations),
    "b kept through a phase": (
        "old.a, old.b, old.n)", "old.a, self.arms[i].b, old.n)",
        test_agent.test_appendix_c_recovers_the_full_data_regression),
    "a kept through a phase": (
        "old.a, old.b, old.n)", "self.arms[i].a, old.b, old.n)",
        plays_are_counted),
    "n forgotten": (
        "old.a, old.b, old.n)", "old.a, old.b)",
        plays_are_counted),
    "old mean kept": (
        "posteriors[i].update(E_new[i], r[i])",
        "posteriors[i].update(E_new[i], r[i]); posteriors[i].mu_hat = self.arms[i].mu_hat",
        test_agent.test_appendix_c_recovers_the_full_data_regression),
    "old features put back": (
        "posteriors[i].update(E_new[i], r[i])", "posteriors[i].update(E_old[i], r[i])",
        test_agent.test_appendix_c_recovers_the_full_data_regression),
    "old features overwritten": (
        "self.prior(forgotten, E_old, E_new,", "self.prior(forgotten, E_new, E_new,",
        test_agent.test_appendix_c_recovers_the_full_data_regression),
    "a phase one step late": (
        "if self.t % self.config.L == 0:\n            self.learn()",
        "if (self.t - 1) % self.config.L == 0:\n            self.learn()",
        test_agent.test_the_network_learns_every_L_steps_and_only_then),
    "a phase that trains in place": (
        "network = copy.deepcopy(self.network)", "network = self.network",
        a_failed_phase_is_undone),
    "an update that assigns bit by bit": (
        "vars(self).update(buffer=buffer, arms=arms, t=self.t + 1)",
        "self.buffer = buffer\n        self.arms = arms\n        self.t += 1",
        an_interrupted_update_is_whole),
    "a network that is not put back": (
        "            agent.network.load_state_dict(before)", "            pass",
        test_errors.test_an_interrupt_at_any_line_of_learn_leaves_all_or_nothing),
    "a rank-one root of half the size": (
        "(u / (k + np.sqrt(k)))", "(u / (k + k))",
        test_nlts.test_sequential_is_batch_is_shuffled_is_printed),
    "noise drawn for each arm by itself": (
        "arm.sample(self.rng, nu2[i])[1] for i, arm in enumerate(self.arms)]     # [1.2]",
        "arm.sample(self.rng)[1] for i, arm in enumerate(self.arms)]     # [1.2]",
        test_nlts.test_noise_is_a_function_of_all_arms),
    "warm-up by the clock": (
        "(self.dim,), LARGEST)\n        plays = [arm.n for arm in self.arms]",
        "(self.dim,), LARGEST)\n        plays = [self.t // self.n_arms for _ in self.arms]",
        test_nlts.test_initial_pulls_play_the_arm_with_the_fewest_plays),
    "gradients left off": (
        "with torch.enable_grad(), torch.random", "with torch.random",
        test_errors.test_learning_works_where_gradients_are_off),
}

BEYOND = {
    "the step of one tuple": (
        "Phi0 = Phi_old + m * C", "Phi0 = Phi_old + C",
        test_beyond.test_the_carried_precision_is_unbiased),
    "steps summed": (
        "C = step.T @ step / len(step)", "C = step.T @ step",
        test_beyond.test_carried_prior_is_its_formula),
    "steps about their mean": (
        "C = step.T @ step / len(step)", "C = np.cov(step.T, ddof=1).reshape(step.shape[1], -1)",
        test_beyond.test_carried_prior_is_its_formula),
    "weights exchanged": (
        "(1 - rho) * carried + rho * w", "rho * carried + (1 - rho) * w",
        test_beyond.test_where_no_feature_moves_nothing_changes),
    "mean not carried": (
        "carried = np.linalg.solve(Phi0, Phi_old @ old.mu_hat)", "carried = old.mu_hat",
        test_beyond.test_carried_prior_is_its_formula),
    "twice the noise": (
        "sigma2 = max(2 * res.sum()", "sigma2 = max(4 * res.sum()",
        test_beyond.test_pooled_noise_is_its_formula),
    "the noise of an arm by itself": (
        "b = config.a0 * sigma2 + res", "b = config.b0 + res",
        test_beyond.test_pooled_noise_is_its_formula),
    "gamma for inverse gamma": (
        "return b / rng.gamma(a)", "return rng.gamma(a) / b",
        test_beyond.test_pooled_noise_is_inverse_gamma),
    "a floor that is not tiny": (
        "1e-300)", "1e-3)",
        test_beyond.test_pooled_noise_is_its_formula),
}


def with_bug(file, right, wrong):
    """The file as a module, with one line replaced."""
    source = (HERE / file).read_text()
    assert source.count(right) == 1, f"{file} has {right!r} {source.count(right)} times"
    module = types.ModuleType(file.removesuffix(".py"))
    exec(compile(source.replace(right, wrong), file, "exec"), vars(module))
    return module


def run(check, **modules):
    """Run a check, a property on the first few seeds."""
    if not hasattr(check, "hypothesis"):
        return check(**modules)
    for seed in range(SEEDS):
        check.hypothesis.inner_test(**modules, seed=seed)


@pytest.mark.parametrize("name", NLTS)
def test_a_bug_in_nlts_is_noticed(name):
    right, wrong, check = NLTS[name]
    with pytest.raises(FAILS):
        run(check, nlts=with_bug("nlts.py", right, wrong))


@pytest.mark.parametrize("name", BEYOND)
def test_a_bug_in_beyond_is_noticed(name, nlts):
    right, wrong, check = BEYOND[name]
    with pytest.raises(FAILS):
        run(check, nlts=nlts, beyond=with_bug("nlts_beyond.py", right, wrong))


@pytest.mark.parametrize("check", {bug[-1].__name__: bug[-1] for bug in NLTS.values()}.values())
def test_the_checks_pass_without_a_bug(check, nlts):
    """On the same seeds."""
    run(check, nlts=nlts)
