"""What runs say and how sure it is: paired differences, shares, verdicts, intervals, growth."""
import numpy as np

LEVEL = 0.05                                          # of a verdict, for its whole family
RESAMPLES = 1000                                      # of a bootstrap


def grouped(lines, *fields, value="reward"):
    """{value of the first field: {of the second: ... array of `value`, by run}}; lines are sorted
    by run. A field that a line lacks is ""."""
    if not fields:
        return np.array([line[value] for line in lines])
    groups = {}
    for line in lines:
        groups.setdefault(line.get(fields[0], ""), []).append(line)
    return {key: grouped(group, *fields[1:], value=value) for key, group in groups.items()}


def paired(x, y=0.0):
    """Mean and standard error of x - y over runs, the first axis; of one run, ± infinity."""
    difference = np.asarray(x, float) - y
    mean = difference.mean(0)
    if len(difference) < 2:
        return mean, np.full_like(mean, np.inf)
    return mean, difference.std(0, ddof=1) / np.sqrt(len(difference))


def share(part, whole):
    """mean(part) / mean(whole) over runs, and its standard error by the jackknife."""
    part, whole = np.asarray(part, float), np.asarray(whole, float)
    n = len(part)
    if not whole.sum():
        return np.nan, np.nan                         # a share of nothing
    if n < 2 or not (whole.sum() - whole).all():
        return part.mean() / whole.mean(), np.nan
    left_out = (part.sum() - part) / (whole.sum() - whole)
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    return part.mean() / whole.mean(), error


# Verdicts -----------------------------------------------------------------------------------------

def p_value(difference, error, runs):
    """Of a two-sided t-test that a mean over runs is 0."""
    from scipy.stats import t as student  # slow to import
    if runs < 2 or not np.isfinite(error):
        return 1.0                                    # one run says nothing
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * student.sf(abs(difference) / error, runs - 1))


def holm(p):
    """Adjusted p-values of a family of tests (Holm, 1979): the chance of one false alarm among all
    that are called significant at a level is at most that level."""
    p = np.asarray(p, float)
    adjusted, largest = np.empty(len(p)), 0.0
    for k, i in enumerate(np.argsort(p, kind="stable")):
        largest = max(largest, min(1.0, (len(p) - k) * p[i]))
        adjusted[i] = largest
    return adjusted


def verdicts(differences):
    """Of each paired difference, an array by run, whether its mean is above 0: "supported", "not
    supported" if it is below, or "unclear", at 5 % for the whole family."""
    found = [(*paired(x), len(x)) for x in differences]
    words = []
    for (mean, _, _), p in zip(found, holm([p_value(*one) for one in found]), strict=True):
        sure = "supported" if mean > 0 else "not supported"
        words.append(sure if p <= LEVEL else "unclear")
    return words


# Summaries over data sets -------------------------------------------------------------------------

def interquartile_mean(scores):
    """The mean of the middle half of all scores: an array by run for each data set."""
    scores = np.sort(np.concatenate(scores))
    quarter = len(scores) // 4
    return float(scores[quarter:len(scores) - quarter].mean())


def probability_of_improvement(x, y):
    """How often a run of x earns more than the same run of y, in the mean over data sets; a tie
    counts half. x and y: an array by run for each data set."""
    wins = [np.mean((a > b) + 0.5 * (a == b)) for a, b in zip(x, y, strict=True)]
    return float(np.mean(wins))


def bootstrap(statistic, *samples, resamples=RESAMPLES, seed=0):
    """A 95 % interval of statistic(*samples) by resampling runs, within each data set and alike in
    all samples. A sample is an array by run for each data set."""
    rng, values = np.random.default_rng(seed), []
    rows = [rng.integers(len(own), size=(resamples, len(own))) for own in samples[0]]
    for k in range(resamples):
        drawn = [[own[r[k]] for own, r in zip(sample, rows, strict=True)] for sample in samples]
        values.append(statistic(*drawn))
    return tuple(np.quantile(values, [0.025, 0.975]).tolist())


def growth(x, y, least=0, most=np.inf):
    """p of y ~ x^p by least squares in logarithms over least <= x <= most, and its error."""
    from scipy.stats import linregress  # slow to import
    chosen = [(u, v) for u, v in zip(x, y, strict=True) if least <= u <= most]
    fit = linregress(*np.log(chosen).T)
    return float(fit.slope), float(np.nan_to_num(fit.stderr))        # nan: y is constant
