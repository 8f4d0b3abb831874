"""Appendix C in numbers: the analytical prior is exact where features are linear in b and the arm
has at least g tuples in the buffer; and how wrong each prior is where that ends."""

import json

import numpy as np
from scipy.linalg import expm

import nlts
import nlts_beyond
from lab import report as lab
from lab.statistics import mean_and_error

RATIOS = [2, 1.5, 1.2, 1, 0.9, 0.8, 0.6, 0.4, 0.2]    # tuples in the buffer over features, n/g
BENDS = [0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1]           # eps in phi = M b + eps tanh(W b)
SIZE = 20                                             # features, g
PRIORS = {  # the function, and in whose style it is drawn
    "analytical": (nlts.invertible_prior, "neural-linear"),
    "likelihood matching": (nlts.likelihood_matching, "both-priors"),
    "carried (ours)": (nlts_beyond.carried_prior, "carried"),
    "no prior": (nlts.no_prior, "no-prior"),
}
EXACT = 1e-8                                          # errors below are rounding
WHAT = "error of predictions", "error of log s²"


def measure(options):
    """Errors by n/g and by eps: (runs, sizes, priors, 2); nan where there is no prior."""
    few, bent = [], []
    for run in range(options.runs):
        rng = np.random.default_rng([options.seed, run])
        few.append([prior_errors(rng, SIZE, round(ratio * SIZE), 0.0) for ratio in RATIOS])
        bent.append([prior_errors(rng, SIZE, 5 * SIZE, eps) for eps in BENDS])
    return np.array(few), np.array(bent)


def prior_errors(rng, g, n, eps, m=400):
    """Two errors of each of PRIORS after one change from b to phi = M b + eps tanh(W b): (4, 2).

    M is a rotation; m tuples have left the buffer, n are in it. Errors of predictions and of log s²
    are on 200 held-out contexts, against a regression on all tuples.
    """
    first = nlts.Config.lam * np.eye(g), np.zeros(g), nlts.Config.a0, nlts.Config.b0
    skew, W = rng.normal(size=(2, g, g)) / np.sqrt(g)
    M, scale = expm((skew - skew.T) / 2), rng.permutation(np.geomspace(0.3, 3, g))
    b, b_test = scale * rng.normal(size=(m + n, g)), scale * rng.normal(size=(200, g))
    r = b @ rng.normal(size=g) + 0.5 * rng.normal(size=m + n)

    def features(b):
        return b @ M.T + eps * np.tanh(b @ W.T)

    arm, full = nlts.BayesianLinearRegression(*first), nlts.BayesianLinearRegression(*first)
    arm.update(b, r)
    full.update(features(b), r)
    forgotten = arm.without(b[m:], r[m:])
    E_old, E_new, test = b[m:], features(b[m:]), features(b_test)
    last_layer = nlts.match_mean(E_old, E_new, forgotten.mu_hat)       # Eq. 5 stands for a network
    errors = []
    for prior, _ in PRIORS.values():
        if prior is nlts.invertible_prior and n < g:  # it needs rank g
            errors.append([np.nan, np.nan])
            continue
        [(Phi0, mu0)] = prior([forgotten], [E_old], [E_new], last_layer[None], nlts.Config.lam)
        arm = nlts.BayesianLinearRegression(Phi0, mu0, forgotten.a, forgotten.b, forgotten.n)
        arm.update(E_new, r[m:])
        wrong = np.linalg.norm(test @ (arm.mu_hat - full.mu_hat))
        errors.append([wrong / np.linalg.norm(test @ full.mu_hat),
                       np.abs(np.log(arm.s2(test) / full.s2(test))).mean()])
    return errors


def report(measured):
    """The largest errors where n >= g."""
    few, _ = measured
    exact = few[:, np.array(RATIOS) >= 1].max((0, 1))
    rows = [[name, *(f"{error:.1e}" for error in both), "exact" if both.max() < EXACT else ""]
            for name, both in zip(PRIORS, exact, strict=True)]
    word = "holds" if rows[0][-1] else "does not hold"
    return lab.page(
        lab.wrapped(f"Appendix C, that the analytical prior is exact, {word}: its largest error is "
                    f"{exact[0].max():.0e}. With fewer tuples than features it is not defined."),
        lab.text_table(["largest error, linear features, n ≥ g", *WHAT, ""], rows)
        + f"\nof {len(few)} runs with g = {SIZE}")


def plot(measured):
    """Errors against tuples in the buffer, and against the bend of features."""
    figure, axes = lab.pyplot().subplots(2, 2, figsize=(8.5, 6.5))
    for row, what in enumerate(WHAT):
        for axis, sizes, errors in zip(axes[row], (RATIOS, BENDS), measured, strict=True):
            mean, error = mean_and_error(errors[..., row])
            for i, (name, (_, look)) in enumerate(PRIORS.items()):
                lab.curve(axis, sizes, mean[:, i], error[:, i], name, look)
            axis.grid(alpha=0.3)
        left, right = axes[row]
        left.set_title(f"{what}, linear features", fontsize=9)
        right.set_title(f"{what}, nonlinear features", fontsize=9)
        left.set_xlabel("tuples in the buffer / features, n/g")
        left.set_yscale("symlog", linthresh=1e-3, linscale=0.5)      # rounding errors are at 0
        right.set(xscale="log", yscale="log", xlabel="ε of features φ = M b + ε tanh(W b)")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(f"Appendix C: mean of {len(errors)} runs ± 1 standard error")
    return {"": figure}


def claims(measured):
    """Whether the paper's claim holds."""
    few, _ = measured
    exact = few[:, np.array(RATIOS) >= 1, 0].max() < EXACT
    yield ("the analytical prior is exact", "Appendix C", "with n ≥ g tuples",
           {"": [1 if exact else -1]}, len(few))


def files(measured):
    """All errors, which are in no file of runs."""
    return {"sanity.json": json.dumps([x.tolist() for x in measured]) + "\n"}
