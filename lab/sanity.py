"""Appendix C in numbers: the analytical prior, and where its assumptions end."""
import numpy as np
from scipy.linalg import expm

import beyond
import nlts
from lab.plots import STYLE, curve, mean_error, panels
from lab.runs import progress
from lab.text import Report, rough, text_table, verdict_of

CHANGES = list(range(1, 11))                          # of the representation
RATIOS = [2, 1.5, 1.2, 1, 0.9, 0.8, 0.6, 0.4, 0.2]    # tuples in the buffer over features, n/g
BENDS = [0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1]        # eps in phi = M b + eps tanh(W b)
PRIORS = {"analytical": "neural-linear", "likelihood matching": "both-priors",
          "carried (ours)": "carried", "none": "no-prior"}           # and in whose style drawn
SIZE = 20                                             # features, g


def sanity(o):
    """Is the analytical prior exact for linear features and n >= g? And what if they are not?"""
    runs = o.runs or (3 if o.quick else 20)
    exact, few, bent = [], [], []
    for run in progress(range(runs), runs, "sanity"):
        rng = np.random.default_rng([o.seed, run])
        exact.append(representation_changes(rng, SIZE, 2 * SIZE, len(CHANGES), 5 * SIZE))
        few.append([prior_errors(rng, SIZE, round(ratio * SIZE), 0.0) for ratio in RATIOS])
        bent.append([prior_errors(rng, SIZE, 5 * SIZE, eps) for eps in BENDS])
    exact, few, bent = np.array(exact), np.array(few), np.array(bent)
    data = {"changes": CHANGES, "n/g": RATIOS, "eps": BENDS, "priors": list(PRIORS),
            "errors of mean, precision, b": exact.tolist(),
            "few tuples: errors of predictions, log s2": few.tolist(),
            "nonlinear features: errors of predictions, log s2": bent.tolist()}
    return Report(tell(exact, few, bent) + rough(o), data, {"sanity": draw(exact, few, bent)})


# What is measured ---------------------------------------------------------------------------------

def representation_changes(rng, g, n, changes, new):
    """phi = A b, and A changes again and again; n tuples are kept, `new` come between changes.

    Relative errors of the posterior's mean, precision and b after each change, against a regression
    on all data whose prior is the first one, seen in the features of the moment: (changes, 3).
    """
    first = nlts.Config.lam * np.eye(g), np.zeros(g)
    arm = nlts.BayesianLinearRegression(*first, nlts.Config.a0, nlts.Config.b0)
    mu, b, r, errors = rng.normal(size=g), np.empty((0, g)), np.empty(0), []
    A = random_map(rng, g)
    to_first = np.linalg.inv(A)
    for _ in range(changes):
        b = np.vstack([b, rng.normal(size=(new, g))])
        r = np.append(r, b[-new:] @ mu + 0.5 * rng.normal(size=new))
        arm.update(b[-new:] @ A.T, r[-new:])
        E_old = b[-n:] @ A.T
        A = random_map(rng, g)                        # the representation changes
        E_new = b[-n:] @ A.T
        left = arm.without(E_old, r[-n:])
        Phi0, mu0 = nlts.invertible_prior(E_old, E_new, left.mu_hat, left.precision)
        arm = after(left, Phi0, mu0, E_new, r[-n:])
        M = A @ to_first
        full = nlts.BayesianLinearRegression(M @ first[0] @ M.T, first[1], nlts.Config.a0,
                                             nlts.Config.b0)
        full.update(b @ A.T, r)
        pairs = (arm.mu_hat, full.mu_hat), (arm.precision, full.precision), ([arm.b], [full.b])
        errors.append([relative_error(x, y) for x, y in pairs])
    return errors


def random_map(rng, g):
    """A well conditioned g x g matrix."""
    return np.linalg.qr(rng.normal(size=(g, g)))[0] * rng.uniform(0.5, 2, g)


def after(left, Phi0, mu0, E, r):
    """The posterior after a learning phase: a prior for what left the buffer, then the buffer."""
    arm = nlts.BayesianLinearRegression(Phi0, mu0, left.a, left.b, left.n)
    arm.update(E, r)
    return arm


def relative_error(x, y):
    """|x - y| / |y|."""
    return np.linalg.norm(np.subtract(x, y)) / np.linalg.norm(y)


def prior_errors(rng, g, n, eps, m=400):
    """Two errors of each of PRIORS after one change from b to phi = M b + eps tanh(W b): (4, 2).

    M is a rotation. Contexts vary ten times more along some axes than along others; m tuples were
    evicted, n are kept. On 200 held-out contexts, against a regression on the new features of all
    tuples: the relative error of the mean prediction, and the mean |log s^2 - log s^2 of it|.
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
    test = features(b_test)
    errors = []
    for Phi0, mu0 in priors_of(left, b[m:], features(b[m:])):
        arm = after(left, Phi0, mu0, features(b[m:]), r[m:])
        errors.append([relative_error(test @ arm.mu_hat, test @ full.mu_hat),
                       np.abs(np.log(arm.variance(test) / full.variance(test))).mean()])
    return errors


def priors_of(left, E_old, E_new):
    """(Phi0, mu0) of each of PRIORS. There is no network: Eq. 5 stands for its last layer."""
    g, lam = E_new.shape[1], nlts.Config.lam
    Phi0, mu0 = nlts.invertible_prior(E_old, E_new, left.mu_hat, left.precision)
    unseen = np.eye(g) - np.linalg.pinv(E_new) @ E_new            # keeps the first prior
    w = nlts.match_mean(E_old, E_new, left.mu_hat)
    found = [(Phi0 + lam * unseen, mu0)]
    for prior in (nlts.likelihood_matching, beyond.carried_prior, nlts.no_prior):
        found += prior([left], [E_old], [E_new], w[None], lam)
    return found


# What is told and drawn ---------------------------------------------------------------------------

def tell(exact, few, bent):
    """Three tables and the verdicts."""
    rows = [[k, *(f"{x:.1e}" for x in mean)]
            for k, mean in zip(CHANGES, exact.mean(0), strict=True)]
    header = ["changes of linear features", "error of mean", "of precision", "of b"]
    parts = [text_table(header, rows)]
    for name, sizes, values in (("n/g", RATIOS, few), ("eps", BENDS, bent)):
        for k, what in enumerate(("predictions", "log s2")):
            mean, error = mean_error(values[..., k])
            rows = [[size, *(f"{u:.2g} ± {v:.1g}" for u, v in zip(m, e, strict=True))]
                    for size, m, e in zip(sizes, mean, error, strict=True)]
            parts.append(text_table([f"{name}: error of {what}", *PRIORS], rows))
    worst = exact.max()
    holds = few[:, :4], bent[:, :1]                   # n >= g; eps = 0
    analytical = max(x[:, :, 0].max() for x in holds)
    matching = max(x[:, :, 1].mean() for x in holds)
    ends = min(few[:, -1, 0].mean(0).min(), bent[:, -1, 0].mean(0).min())
    parts.append(
        f"Appendix C, the analytical prior is exact for linear features and n >= g: "
        f"{verdict_of(max(worst, analytical) < 1e-8)}, largest relative error in {len(CHANGES)} "
        f"changes {worst:.1e}.\nEq. 6, likelihood matching, is exact there, too: "
        f"{verdict_of(matching < 1e-8)}, mean error {matching:.2g}: it has many solutions, and the "
        "smallest S is not the right one.\n"
        f"These assumptions are needed: {verdict_of(ends > 0.01)}.")
    return "\n\n".join(parts)


def draw(exact, few, bent):
    """Errors against the number of changes, the tuples in the buffer, and the bend of features."""
    figure, axes = panels(f"Appendix C: error against full memory, g = {SIZE}, mean ± 1 standard "
                          f"error of {len(exact)} runs")
    mean, error = mean_error(exact)
    for i, label in enumerate(("posterior mean", "posterior precision", "b")):
        curve(axes[0], i, CHANGES, mean[:, i], label, error[:, i])
    for axis, sizes, values, k in ((axes[1], RATIOS, few, 0), (axes[2], BENDS, bent, 1)):
        mean, error = mean_error(values[..., k])
        for i, prior in enumerate(PRIORS):
            curve(axis, i, [x or np.nan for x in sizes], mean[:, i], prior, error[:, i],
                  **STYLE[PRIORS[prior]])
    axes[0].set(title="linear features, n = 2g, analytical prior", ylabel="relative error",
                xlabel="changes of the representation", ylim=(1e-16, 1e-11))
    axes[1].set(title="linear features, few tuples", ylabel="relative error of predictions",
                xlabel="tuples in the buffer over features, n/g", xlim=(2.05, 0.15))
    axes[2].set(title="nonlinear features, n = 5g", ylabel="mean |Δ log s²|", xscale="log",
                xlabel="eps in φ = M b + eps tanh(W b)")
    axes[1].set_ylim(bottom=1e-3)
    for axis in axes:
        axis.legend(fontsize=8)
    return figure
