"""Statistics over runs, with uncertainty."""
from typing import NamedTuple

import numpy as np

LEVEL = 0.05                                          # of a verdict, for its whole family


def grouped(results, *fields, value="reward"):
    """{value of the first field: {of the second: ... array of `value`, by run}}; results are sorted
    by run. A field that a result lacks is ""."""
    if not fields:
        return np.array([result[value] for result in results])
    groups = {}
    for result in results:
        groups.setdefault(result.get(fields[0], ""), []).append(result)
    return {key: grouped(group, *fields[1:], value=value) for key, group in groups.items()}


def difference(x, y):
    """x - y over the runs that both have."""
    n = min(len(x), len(y))
    return np.asarray(x[:n], float) - np.asarray(y[:n], float)


def differences(rewards, pairs):
    """{((a, b), data set): rewards of a - b by run}, where both were played."""
    return {((a, b), d): difference(by_name[a], by_name[b]) for a, b in pairs
            for d, by_name in rewards.items() if a in by_name and b in by_name}


def mean_and_error(x):
    """Mean and standard error over runs, the first axis; of one run, ± infinity."""
    x = np.asarray(x, float)
    mean = x.mean(0)
    if len(x) < 2:
        return mean, np.full_like(mean, np.inf)
    return mean, x.std(0, ddof=1) / np.sqrt(len(x))


def mean_over_sets(by_set):
    """Mean over data sets of the means over runs, and its standard error over runs."""
    mean, error = np.transpose([mean_and_error(x) for x in by_set.values()])
    return mean.mean(), np.linalg.norm(error) / len(mean)


def ratio_of_means(x, y):
    """mean(x) / mean(y) over runs, and its standard error by the jackknife."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    n = len(x)
    if not y.sum():
        return np.nan, np.nan
    if n < 2 or not (y.sum() - y).all():
        return x.mean() / y.mean(), np.nan
    left_out = (x.sum() - x) / (y.sum() - y)
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    return x.mean() / y.mean(), error


# Verdicts -----------------------------------------------------------------------------------------

class Judged(NamedTuple):
    """A mean difference over runs, and whether it is certain."""
    mean: float
    error: float                   # standard error
    sign: int                      # 1: above 0 at 5 % for the whole family, -1: below, 0: unclear
    runs: int


def judged(differences):
    """{key: Judged} of {key: array by run}: t-tests, with Holm's correction for all of them."""
    p = holm([p_value(x) for x in differences.values()])
    found = {}
    for (key, x), p_i in zip(differences.items(), p, strict=True):
        mean, error = mean_and_error(x)
        found[key] = Judged(float(mean), float(error), int(np.sign(mean)) * int(p_i <= LEVEL),
                            len(x))
    return found


def judge_rewards(results, pairs):
    """{((a, b), data set): Judged} of rewards of a - b, where both were played: one family."""
    return judged(differences(grouped(results, "dataset", "algorithm"), pairs))


def judge_regrets(comparisons, regrets):
    """{comparison: Judged}, all one family. A comparison (better, worse, when, slack) says that the
    better one has less of regrets[when][algorithm], by run; with a slack, a share of the worse
    one's regret, that it is as good."""
    saved = {}
    for better, worse, when, slack in comparisons:
        own = regrets[when]
        if better in own and worse in own:
            spare = slack * own[worse].mean()
            saved[better, worse, when, slack] = difference(own[worse], own[better]) + spare
    return judged(saved)


def p_value(x):
    """Of a two-sided t-test that the mean over runs is 0; one run says nothing."""
    from scipy.stats import ttest_1samp  # slow to import
    if len(x) < 2:
        return 1.0
    if np.ptp(x) == 0:
        return float(x[0] == 0)
    return float(ttest_1samp(x, 0).pvalue)


def holm(p):
    """Adjusted p-values of a family of tests (Holm, 1979): the chance of one false alarm among all
    that are called significant at a level is at most that level."""
    p = np.asarray(p, float)
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(np.arange(len(p), 0, -1) * p[order]).clip(max=1)
    return adjusted


def detectable(runs, tests, power=0.8):
    """The difference, in standard deviations of a paired difference, that a family of `tests`
    t-tests finds with this chance, if all the others find nothing."""
    from scipy.optimize import brentq  # slow to import
    from scipy.stats import nct, t
    limit = t.ppf(1 - LEVEL / tests / 2, runs - 1)
    return brentq(lambda d: nct.sf(limit, runs - 1, d * np.sqrt(runs)) - power, 1e-6, 1e5)
