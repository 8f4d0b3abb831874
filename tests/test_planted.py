"""Planted bugs: a check that cannot fail shows nothing. Each of these must be noticed.

A bug is a piece of nlts.py or nlts_beyond.py replaced by a wrong one. The broken source is
imported as a module of its own and given to the check, which must fail. Bugs that only make
Newton's method slower (a wrong H, a wrong start) are no part of this: S stays right. The bugs of
the classroom's hunts are planted in tests/test_reading.py.
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
matching, beyond = checks_of("tests/test_matching.py"), checks_of("tests/test_beyond.py")
errors = checks_of("tests/test_errors.py")

# the checks that must fail
updates = core.test_sequential_is_batch_is_shuffled_is_printed
small_numbers = core.test_updates_in_small_numbers
squared_error = core.test_b_grows_by_the_squared_prediction_error
without = core.test_without_is_the_posterior_of_the_other_tuples
shared = core.test_a_posterior_shares_nothing_with_its_prior_or_its_rows
sampler = core.test_sampler_against_inverse_gamma_and_student_t
known_noise = core.test_known_noise_is_sampled_as_printed
noise = agents.test_noise_is_a_function_of_all_arms
late = partial(agents.test_initial_pulls_go_in_turn, order="rewards come late")
log = agents.test_a_log_that_is_fed_by_update_counts_as_pulls
adam = agents.test_train_takes_adam_steps_on_the_squared_error
dropout = agents.test_dropout_is_off_between_learning_phases_and_seeded_in_them
text = agents.test_text_cnn_is_convolutions_and_the_maximum_over_time
evicted = core.test_a_full_buffer_loses_the_first_tuple_of_the_same_arm
refused = errors.test_buffer_names_bad_input
match_mean = core.test_match_mean_reproduces_the_old_predictions
reproduced = agents.test_the_papers_prior_reproduces_s2_where_it_can
appendix_c = core.test_appendix_c_recovers_the_full_data_regression
plays = partial(agents.test_a_counts_the_plays_of_its_arm_always, prior="no_prior")
phases = agents.test_the_network_learns_every_L_steps_and_only_then
failing = partial(errors.test_a_phase_that_fails_leaves_the_agent_as_it_was,
                  options={"train": errors.train_breaks}, error="train")
bias = partial(errors.test_a_network_must_be_features_times_weights, function=errors.with_bias)
closed_form = matching.test_orthogonal_rows_in_closed_form
small_matching = core.test_matching_in_small_numbers
raised = core.test_S_is_Z_with_its_eigenvalues_raised
units = core.test_matching_does_not_depend_on_units_basis_and_order
carried = beyond.test_carried_prior_is_its_formula
unbiased = beyond.test_the_carried_precision_is_unbiased
unmoved = beyond.test_where_no_feature_moves_nothing_changes
pooled = beyond.test_pooled_noise_is_its_formula
pooled_sampler = beyond.test_pooled_noise_is_inverse_gamma
positive = beyond.test_pooled_noise_is_positive_before_any_reward

START = "    n = len(E)\n"                                   # of match_covariance
PULLS = "np.maximum(self.chosen, [arm.n for arm in self.arms])"
ROOT = "root = Q * np.sqrt(x)"

# name: what is replaced, by what, the check that must fail
NLTS = {
    "root transposed": ("(self.root @ z)", "(self.root.T @ z)", known_noise),
    "gamma for inverse gamma": ("arm.b / rng.gamma(arm.a)", "rng.gamma(arm.a) / arm.b", sampler),
    "b of the residuals after": ("max(error_before", "max(error_after", squared_error),
    "a counts rows once": ("self.a + len(r) / 2", "self.a + 1 / 2", updates),
    "a rank-one root of half the size": ("k + np.sqrt(k)))", "k + k))", small_numbers),
    "the buffer's rewards count twice": ("self.f - E.T @ r)", "self.f)", without),
    "b taken out with one mean": ("self.b - error_before @ error_after",
                                  "self.b - error_before @ error_before", without),
    "shared prior": ("x.astype(float)", "x.astype(float, copy=False)", shared),
    "noise of the first arm for all": ("arm.sample(nu2_i,", "arm.sample(nu2[0],", noise),
    "initial pulls by rewards alone": (PULLS, "np.array([arm.n for arm in self.arms])", late),
    "initial pulls by choices alone": (PULLS, "self.chosen", log),
    "an act that raises counts": (PULLS, PULLS + "; self.chosen[pulls.argmin()] += 1", late),
    "all arms trained": ("D[torch.arange(config.batch), torch.as_tensor(played[rows])]",
                         "D.mean(1)", adam),
    "absolute errors": ("rewards[rows])) ** 2)", "rewards[rows])).abs())", adam),
    "gradients left off": ("with torch.enable_grad(), torch", "with torch", dropout),
    "dropout that is not seeded": ("torch.manual_seed(int(rng.integers(2 ** 31)))",
                                   "rng.integers(2 ** 31)", dropout),
    "mean over time": (".amax(2)", ".mean(2)", text),
    "dropout at all times": ("0.5, self.training)", "0.5, True)", text),
    "one tuple too many": ("if len(self.tuples) ==", "if len(self.tuples) - 1 ==", evicted),
    "evicted before it is refused": ("float(_array(\"reward\", reward, ()))", "reward", refused),
    "matching the wrong way round": ("lstsq(E_new, E_old @ mu_old", "lstsq(E_old, E_new @ mu_old",
                                     match_mean),
    "covariance for precision": ("np.linalg.inv(match(E_new[i], s2))", "match(E_new[i], s2)",
                                 reproduced),
    "s of the new features": ("old.s2(E_old[i])", "old.s2(E_new[i])", reproduced),
    "b kept through a phase": ("old.a, old.b, old.n)", "old.a, 6.0, old.n)", appendix_c),
    "a kept through a phase": ("old.a, old.b, old.n)", "6.0, old.b, old.n)", plays),
    "n forgotten": ("old.a, old.b, old.n)", "old.a, old.b)", plays),
    "the buffer is not put back": ("arm.update(E, r_i)", "pass", appendix_c),
    "old features put back": ("priors, E_new, r, strict", "priors, E_old, r, strict", appendix_c),
    "a phase one step late": ("self.t % self", "(self.t - 1) % self", phases),
    "a phase that trains in place": ("copy.deepcopy(self.network)", "self.network", failing),
    "a phase that draws in place": ("copy.deepcopy(self.rng)", "self.rng", failing),
    "a bias is not looked for": ("        _check_forward(network, contexts)\n", "", bias),
    # Eq. 6
    "s for s^2": (START, START + "    s2 = np.sqrt(s2)\n", small_matching),
    "the last tuple is lost": (START, "    E, s2, n = E[:-1], s2[:-1], len(E) - 1\n", closed_form),
    "features about their mean": (START, START + "    E = E - E.mean(0)\n", closed_form),
    "the sum for the mean": ("ridge * np.mean(", "ridge * np.sum(", closed_form),
    "a ridge in other units": ("np.mean(norm2 ** 2)", "np.mean(norm2)", units),
    "a floor in other units": ("floor * (norm2 @ s2) / (norm2 @ norm2)", "floor", units),
    "half the floor": ("floor * (norm2 @ s2)", "floor / 2 * (norm2 @ s2)", closed_form),
    "stops at once": ("1e-30 * s2 @ s2:", "1e-1 * s2 @ s2:", raised),
    "root left out": (ROOT, "root = Q * x", closed_form),
    "the absolute Z for S": (ROOT, "root = Q * np.sqrt(np.abs(w))", small_matching),
    "eigenvectors in rows": (ROOT, "root = Q.T * np.sqrt(x)", closed_form),
    "eigenvalues in the other order": (ROOT, "root = Q * np.sqrt(x[::-1])", small_matching),
    "mirrored, not raised": ("np.maximum(w, least)", "np.maximum(np.abs(w), least)", raised),
}

BEYOND = {
    "the step of one tuple": ("Phi_old + m * C", "Phi_old + C", unbiased),
    "steps about their mean": (
        "step.T @ step / len(step)", "np.cov(step.T, ddof=0).reshape(step.shape[1], -1)", carried),
    "weights exchanged": ("(1 - rho) * carried + rho * w)", "rho * carried + (1 - rho) * w)",
                          unmoved),
    "mean not carried": ("np.linalg.solve(Phi0, Phi_old @ old.mu_hat)", "old.mu_hat", carried),
    "a mean over plays": ("np.mean(2 * res[played] / n[played])", "2 * res.sum() / n.sum()",
                          pooled),
    "arms that were never played": ("n > 0", "n >= 0; n = np.maximum(n, 1)", pooled),
    "the noise of an arm by itself": ("config.a0 * max(sigma2, 1e-300) + res", "config.b0 + res",
                                      pooled),
    "gamma for inverse gamma": ("return b / rng.gamma(a)", "return rng.gamma(a) / b",
                                pooled_sampler),
    "a floor that is not tiny": ("1e-300)", "1e-3)", positive),
}


def with_bug(file, right, wrong):
    """The file as a module, with one piece replaced, which it has once."""
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
