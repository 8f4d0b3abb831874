"""Planted bugs: a check that cannot fail shows nothing. Each of these must be noticed.

A bug is one line of nlts.py or nlts_beyond.py replaced by a wrong one. The broken source is
imported as a module of its own and given to the check, which must fail. Bugs that only make
Newton's method slower (a wrong H, a wrong start) are no part of this: S stays right.
"""
import importlib.util
import types
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

HERE = Path(__file__).resolve().parent.parent
FAILS = AssertionError, RuntimeError, ValueError, pytest.fail.Exception  # nothing was raised


def checks_of(path):
    """The tests of a file, whose properties do not shrink what fails."""
    spec = importlib.util.spec_from_file_location(f"planted_{Path(path).stem}", HERE / path)
    module = importlib.util.module_from_spec(spec)
    settings.load_profile("planted")
    spec.loader.exec_module(module)
    settings.load_profile("default")
    return module


core, agents = checks_of("test_nlts.py"), checks_of("tests/test_agent.py")
matching, beyond_checks = checks_of("tests/test_matching.py"), checks_of("tests/test_beyond.py")
errors = checks_of("tests/test_errors.py")

sampler = core.test_sampler_against_inverse_gamma_and_student_t
updates = core.test_sequential_is_batch_is_shuffled_is_printed
without = core.test_without_is_the_posterior_of_the_other_tuples
appendix_c = core.test_appendix_c_recovers_the_full_data_regression
evicted = core.test_a_full_buffer_loses_the_first_tuple_of_the_same_arm
closed_form = matching.test_orthogonal_rows_in_closed_form
small_matching = core.test_matching_in_small_numbers
raised = core.test_S_is_Z_with_its_eigenvalues_raised
units = core.test_matching_does_not_depend_on_units_basis_and_order
adam = agents.test_train_takes_adam_steps_on_the_squared_error
plays = partial(agents.test_a_counts_the_plays_of_its_arm_always, prior="no_prior")
failing = partial(errors.test_a_phase_that_fails_leaves_the_agent_as_it_was,
                  options={"train": errors.train_breaks}, error="train")
late = partial(agents.test_initial_pulls_go_in_turn, order="rewards come late")
bias = partial(errors.test_a_network_must_be_features_times_weights, function=errors.with_bias)
dropout = agents.test_dropout_is_off_between_learning_phases_and_seeded_in_them
reproduced = agents.test_the_papers_prior_reproduces_s2_where_it_can
pooled = beyond_checks.test_pooled_noise_is_its_formula
text = agents.test_text_cnn_is_convolutions_and_the_maximum_over_time

DRAW = "np.sqrt(nu2) * (self.root @ z)"
MEAN = "self.mu_hat = root @ (root.T @ (self.Phi0 @ self.mu0 + self.f))"
CARRIED = "BayesianLinearRegression(Phi0, mu0, old.a, old.b, old.n)"
PUT_BACK = "            arm.update(E, r_i) "
LOSER = "loser = arm if arm in played else np.bincount(played).argmax()"
EVICT = "del self.tuples[played.index(loser)]"
PULLS = "pulls = np.maximum(self.chosen, [arm.n for arm in self.arms])"
ROOT = "root = Q * np.sqrt(x)"
RAISED = "x = np.maximum(w, least)"
START = "    n = len(E)\n"

# name: the line, the line with the bug, the check that must fail
NLTS = {
    "squared nu": (DRAW, "nu2 * (self.root @ z)", sampler),
    "root transposed": (DRAW, "np.sqrt(nu2) * (self.root.T @ z)",
                        core.test_known_noise_is_sampled_as_printed),
    "gamma for inverse gamma": (
        "[arm.b / rng.gamma(arm.a) for", "[rng.gamma(arm.a) / arm.b for", sampler),
    "prior mean ignored": (MEAN, "self.mu_hat = root @ (root.T @ self.f)", updates),
    "b of the residuals after": (
        "self.b + max(error_before @ error_after", "self.b + max(error_after @ error_after",
        core.test_b_grows_by_the_squared_prediction_error),
    "a counts rows once": ("self.a = self.a + len(r) / 2", "self.a = self.a + 1 / 2", updates),
    "a rank-one root of half the size": (
        "(u / (k + np.sqrt(k)))", "(u / (k + k))", core.test_updates_in_small_numbers),
    "the buffer counts twice": (
        "Phi_old = self.precision - E.T @ E", "Phi_old = self.precision", without),
    "the buffer's rewards count twice": (
        "self.Phi0 @ self.mu0 + self.f - E.T @ r)", "self.Phi0 @ self.mu0 + self.f)", without),
    "b taken out with one mean": (
        "self.b - error_before @ error_after", "self.b - error_before @ error_before", without),
    "shared prior": ("    x = x.astype(float)\n", "    x = x.astype(float, copy=False)\n",
                     core.test_a_posterior_shares_nothing_with_its_prior_or_its_rows),
    "noise of the first arm for all": (
        "arm.sample(nu2_i, self.rng) for", "arm.sample(nu2[0], self.rng) for",
        agents.test_noise_is_a_function_of_all_arms),
    "initial pulls by rewards alone": (
        PULLS, "pulls = np.array([arm.n for arm in self.arms])", late),
    "initial pulls by choices alone": (
        PULLS, "pulls = self.chosen", agents.test_a_log_that_is_fed_by_update_counts_as_pulls),
    "an act that raises counts": (
        PULLS, PULLS + "; self.chosen[pulls.argmin()] += 1", late),
    "all arms trained": (
        "D[torch.arange(config.batch), torch.as_tensor(played[rows])]", "D.mean(1)", adam),
    "absolute errors": ("_tensor(network, rewards[rows])) ** 2)",
                        "_tensor(network, rewards[rows])).abs())", adam),
    "gradients left off": (
        "with torch.enable_grad(), torch.random", "with torch.random", dropout),
    "dropout that is not seeded": (
        "torch.manual_seed(int(rng.integers(2 ** 31)))", "rng.integers(2 ** 31)", dropout),
    "mean over time": (".amax(2) for", ".mean(2) for", text),
    "dropout at all times": ("0.5, self.training)", "0.5, True)", text),
    "first tuple of any arm evicted": (LOSER, "loser = played[0]", evicted),
    "newest evicted": (
        EVICT, "del self.tuples[len(played) - 1 - played[::-1].index(loser)]", evicted),
    "one tuple too many": ("if len(self.tuples) == self.capacity:",
                           "if len(self.tuples) - 1 == self.capacity:", evicted),
    "evicted before it is refused": ("reward = float(_array(\"reward\", reward, ()))",
                                     "reward = reward", errors.test_buffer_names_bad_input),
    "matching the wrong way round": (
        "np.linalg.lstsq(E_new, E_old @ mu_old, rcond=None)[0]",
        "np.linalg.lstsq(E_old, E_new @ mu_old, rcond=None)[0]",
        core.test_match_mean_reproduces_the_old_predictions),
    "covariance for precision": (
        "Phi0 = np.linalg.inv(match(E_new[i], s2))", "Phi0 = match(E_new[i], s2)", reproduced),
    "s of the new features": ("s2 = old.s2(E_old[i])", "s2 = old.s2(E_new[i])", reproduced),
    "appendix C transposed": ("Phi0 = A @ old.precision @ A.T", "Phi0 = A.T @ old.precision @ A",
                              core.test_analytical_prior_solves_both_matching_equations),
    "b kept through a phase": (CARRIED, CARRIED.replace("old.b", "6.0"), appendix_c),
    "a kept through a phase": (CARRIED, CARRIED.replace("old.a", "6.0"), plays),
    "n forgotten": (CARRIED, CARRIED.replace(", old.n", ""), plays),
    "the buffer is not put back": (PUT_BACK, "            pass", appendix_c),
    "old features put back": (
        "zip(forgotten, priors, E_new, r, strict", "zip(forgotten, priors, E_old, r, strict",
        appendix_c),
    "old features overwritten": (
        "self.prior(forgotten, E_old, E_new,", "self.prior(forgotten, E_new, E_new,", appendix_c),
    "a phase one step late": ("if self.t % self.config.L == 0:",
                              "if (self.t - 1) % self.config.L == 0:",
                              agents.test_the_network_learns_every_L_steps_and_only_then),
    "a phase that trains in place": (
        "network = copy.deepcopy(self.network)", "network = self.network", failing),
    "a phase that draws in place": ("rng = copy.deepcopy(self.rng)", "rng = self.rng", failing),
    "a bias is not looked for": ("        _check_forward(network, contexts)\n", "", bias),
    # Eq. 6
    "s for s^2": (START, START + "    s2 = np.sqrt(s2)\n", small_matching),
    "the last tuple is lost": (START, "    E, s2, n = E[:-1], s2[:-1], len(E) - 1\n", closed_form),
    "features about their mean": (START, START + "    E = E - E.mean(0)\n", closed_form),
    "the sum for the mean": ("rho = ridge * np.mean(norm2 ** 2)",
                             "rho = ridge * np.sum(norm2 ** 2)", closed_form),
    "a ridge in other units": (
        "rho = ridge * np.mean(norm2 ** 2)", "rho = ridge * np.mean(norm2)", units),
    "a floor in other units": (
        "least = floor * (norm2 @ s2) / (norm2 @ norm2)", "least = floor", units),
    "stops at once": ("1e-30 * s2 @ s2:", "1e-1 * s2 @ s2:", raised),
    "root left out": (ROOT, "root = Q * x", closed_form),
    "the absolute Z for S": (ROOT, "root = Q * np.sqrt(np.abs(w))", small_matching),
    "eigenvectors in rows": (ROOT, "root = Q.T * np.sqrt(x)", closed_form),
    "raised to twice the floor": (RAISED, "x = np.where(w > least, w, 2 * least)", small_matching),
    "mirrored, not raised": (RAISED, "x = np.maximum(np.abs(w), least)", raised),
}

BEYOND = {
    "the step of one tuple": ("Phi0 = Phi_old + m * C", "Phi0 = Phi_old + C",
                              beyond_checks.test_the_carried_precision_is_unbiased),
    "steps about their mean": (
        "C = step.T @ step / len(step)", "C = np.cov(step.T, ddof=0).reshape(step.shape[1], -1)",
        beyond_checks.test_carried_prior_is_its_formula),
    "weights exchanged": ("(1 - rho) * carried + rho * w", "rho * carried + (1 - rho) * w",
                          beyond_checks.test_where_no_feature_moves_nothing_changes),
    "mean not carried": (
        "carried = np.linalg.solve(Phi0, Phi_old @ old.mu_hat)", "carried = old.mu_hat",
        beyond_checks.test_carried_prior_is_its_formula),
    "a mean over plays": (
        "np.mean(2 * res[played] / n[played])", "2 * res.sum() / n.sum()", pooled),
    "arms that were never played": (
        "played = n > 0", "played = n >= 0; n = np.maximum(n, 1)", pooled),
    "the noise of an arm by itself": (
        "b = config.a0 * max(sigma2, 1e-300) + res", "b = config.b0 + res", pooled),
    "gamma for inverse gamma": ("return b / rng.gamma(a)", "return rng.gamma(a) / b",
                                beyond_checks.test_pooled_noise_is_inverse_gamma),
    "a floor that is not tiny": ("1e-300)", "1e-3)",
                                 beyond_checks.test_pooled_noise_is_positive_before_any_reward),
}


def with_bug(file, right, wrong):
    """The file as a module, with one line replaced."""
    source = (HERE / file).read_text()
    if source.count(right) != 1:
        raise LookupError(f"{file} has {right!r} {source.count(right)} times")
    module = types.ModuleType(file.removesuffix(".py"))
    exec(compile(source.replace(right, wrong), file, "exec"), vars(module))
    return module


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NLTS)
def test_a_bug_in_nlts_is_noticed(name):
    right, wrong, check = NLTS[name]
    broken = with_bug("nlts.py", right, wrong)
    with pytest.raises(FAILS):
        check(nlts=broken)


@pytest.mark.parametrize("name", BEYOND)
def test_a_bug_in_beyond_is_noticed(name, nlts):
    right, wrong, check = BEYOND[name]
    broken = with_bug("nlts_beyond.py", right, wrong)
    with pytest.raises(FAILS):
        check(nlts=nlts, beyond=broken)


def test_a_bug_that_is_not_planted_is_told():
    with pytest.raises(LookupError):
        with_bug("nlts.py", "a line that is not there", "")
