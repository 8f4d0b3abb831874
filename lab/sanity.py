"""Appendix C in numbers: the analytical prior, and where its assumptions end."""
import numpy as np
from scipy.linalg import expm

import beyond
import nlts
from lab.plots import curve, pyplot
from lab.runs import progress
from lab.text import Report, paired, rough, text_table

RATIOS = [2, 1.5, 1.2, 1, 0.9, 0.8, 0.6, 0.4, 0.2]    # tuples in the buffer over features, n/g
BENDS = [0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1]           # eps in phi = M b + eps tanh(W b)
PRIORS = {"analytical": "neural-linear", "likelihood matching": "both-priors",
          "carried (ours)": "carried", "none": "no-prior"}           # and in whose style drawn
SIZE = 20                                             # features, g


def sanity(o):
    """Is the analytical prior exact for linear features and n >= g? And what if they are not?"""
    runs = o.runs or (3 if o.quick else 20)
    few, bent = [], []
    for run in progress(range(runs), runs, "sanity"):
        rng = np.random.default_rng([o.seed, run])
        few.append([prior_errors(rng, SIZE, round(ratio * SIZE), 0.0) for ratio in RATIOS])
        bent.append([prior_errors(rng, SIZE, 5 * SIZE, eps) for eps in BENDS])
    few, bent = np.array(few), np.array(bent)         # (runs, sizes, priors, 2 errors)
    data = {"n/g": RATIOS, "eps": BENDS, "priors": list(PRIORS),
            "errors by n/g": few.tolist(), "errors by eps": bent.tolist()}
    sweeps = [("error of predictions, linear features",
               "tuples in the buffer / features, n/g", RATIOS, few[..., 0]),
              ("mean |Δ log s²|, nonlinear features",
               "ε of features φ = M b + ε tanh(W b)", BENDS, bent[..., 1])]
    return Report(tell(few[:, :4]) + rough(o), data, {"sanity": draw(sweeps)})


def prior_errors(rng, g, n, eps, m=400):
    """Two errors of each of PRIORS after one change from b to phi = M b + eps tanh(W b): (4, 2).

    M is a rotation; m tuples were evicted, n are kept. Errors of predictions and of log s² are on
    200 held-out contexts, against a regression on all tuples.
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
    left = arm.without(b[m:], r[m:])
    E_old, E_new, test = b[m:], features(b[m:]), features(b_test)
    Phi0, mu0 = nlts.invertible_prior(E_old, E_new, left.mu_hat, left.precision)
    unseen = np.eye(g) - np.linalg.pinv(E_new) @ E_new            # keeps the first prior
    last_layer = nlts.match_mean(E_old, E_new, left.mu_hat)       # Eq. 5 stands for a network
    priors = [(Phi0 + nlts.Config.lam * unseen, mu0)]
    for prior in (nlts.likelihood_matching, beyond.carried_prior, nlts.no_prior):
        priors += prior([left], [E_old], [E_new], last_layer[None], nlts.Config.lam)
    errors = []
    for Phi0, mu0 in priors:
        arm = nlts.BayesianLinearRegression(Phi0, mu0, left.a, left.b, left.n)
        arm.update(E_new, r[m:])
        wrong = np.linalg.norm(test @ (arm.mu_hat - full.mu_hat))
        errors.append([wrong / np.linalg.norm(test @ full.mu_hat),
                       np.abs(np.log(arm.variance(test) / full.variance(test))).mean()])
    return errors


def tell(exact):
    """The largest errors where n >= g: of each prior two, (runs, sizes, priors, 2)."""
    rows = []
    for i, name in enumerate(PRIORS):
        errors = exact[:, :, i].max((0, 1))
        rows.append([name, *(f"{error:.1e}" for error in errors),
                     "exact" if errors.max() < 1e-8 else "not exact"])
    claim = "supported" if rows[0][-1] == "exact" else "not supported"
    return text_table(["largest error, linear features, n >= g", "of predictions", "of log s²", ""],
                      rows) + f"\nAppendix C, the analytical prior is exact: {claim}"


def draw(sweeps):
    """Errors against the tuples in the buffer, and against the bend of the features."""
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.9))
    figure.suptitle(f"Appendix C: mean of {len(sweeps[0][-1])} runs ± 1 standard error")
    for axis, (title, name, sizes, values) in zip(axes, sweeps, strict=True):
        mean, error = paired(values)
        for i, (prior, style) in enumerate(PRIORS.items()):
            curve(axis, sizes, mean[:, i], error[:, i], prior, style)
        axis.set(title=title, xlabel=name, yscale="log")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8, loc="lower left")
    axes[0].set_ylim(1e-3, 2)
    axes[0].text(1, 1.2e-3, f"analytical: {sweeps[0][-1][:, :4, 0].max():.0e} at most", fontsize=8)
    axes[1].set_xscale("log")
    return figure
