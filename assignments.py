"""Planted bugs: what goes wrong when one line of nlts.py is wrong. The tests must catch every one of them."""
import importlib.util
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "nlts.py"


@dataclass(frozen=True)
class Bug:
    """One wrong line: `right` stands once in nlts.py and becomes `wrong`; `caught_by` are tests that must fail."""
    right: str
    wrong: str
    caught_by: tuple


BUGS = {
    "squared-nu": Bug("np.sqrt(nu2) * self._solve_R(z)", "nu2 * self._solve_R(z)",
                      ("test_sampler_against_inverse_gamma_and_student_t", "test_known_noise_is_sampled_as_printed")),
    "precision-as-covariance": Bug("np.sqrt(nu2) * self._solve_R(z)", "np.sqrt(nu2) * (self.F[:-1, :-1].T @ z)",
                                   ("test_sampler_against_inverse_gamma_and_student_t",)),
    "s-for-s2": Bug("E_old[i].T, lower=True) ** 2).sum(0)", "E_old[i].T, lower=True) ** 2).sum(0) ** 0.5",
                    ("test_priors_after_a_learning_phase_are_as_specified[both-last-layer]",
                     "test_if_training_changes_no_feature_the_posterior_stays")),
    "double-counting": Bug("np.linalg.eigh(arm.Phi - E_old.T @ E_old)", "np.linalg.eigh(arm.Phi)",
                           ("test_what_is_carried_over_is_exactly_what_left_the_buffer",
                            "test_if_training_changes_no_feature_the_posterior_stays")),
    "overwritten-old-features": Bug("E_new, c = self.buffer_features(), self.config",
                                    "E_old, E_new, c = self.buffer_features(), self.buffer_features(), self.config",
                                    ("test_priors_after_a_learning_phase_are_as_specified[both-last-layer]",)),
    "aliased-prior": Bug('self._set_prior(_array("Phi0", Phi0, (g, g)), _array("mu0", mu0, (g,)), a, b)',
                         "self._set_prior(Phi0, mu0, a, b)",
                         ("test_restart_takes_prior_and_rows_and_leaves_a_and_b",
                          "test_no_state_is_shared_between_arms_phases_or_agents")),
    "stale-mean": Bug("arm.restart(Phi0, mu0, E_new[i], r)",
                      "stale = arm.mu_hat; arm.restart(Phi0, mu0, E_new[i], r); arm.mu_hat = stale",
                      ("test_priors_after_a_learning_phase_are_as_specified[both-last-layer]",)),
    "wrong-arm-evicted": Bug("rows = np.flatnonzero(arms == (arm if arm in arms else np.bincount(arms).argmax()))",
                             "rows = np.arange(self.n)", ("test_buffer_is_a_list_with_round_robin",)),
    "newest-evicted": Bug("slot = rows[self.times[rows].argmin()]", "slot = rows[self.times[rows].argmax()]",
                          ("test_buffer_is_a_list_with_round_robin",)),
    "buffer-booked-as-news": Bug("self.a, self.b, self.F[-1, -1] = a, b, np.sqrt(2 * b)", "pass",
                                 ("test_restart_takes_prior_and_rows_and_leaves_a_and_b",)),
    "prior-mean-ignored": Bug("(R @ mu0)[:, None]", "0 * (R @ mu0)[:, None]",
                              ("test_sequential_is_batch_is_shuffled_is_printed",)),
    "all-arms-trained": Bug("[torch.arange(batch), torch.as_tensor(arms)]", ".mean(1)",
                            ("test_train_differentiates_only_the_played_arm",)),
}


def with_bug(name):
    """The source of nlts.py with one planted bug."""
    source, bug = SOURCE.read_text(), BUGS[name]
    if source.count(bug.right) != 1:
        raise ValueError(f"{name}: expected its line once in nlts.py, found it {source.count(bug.right)} times")
    return source.replace(bug.right, bug.wrong)


def import_source(source, name):
    """A module made from source text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nlts.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module
