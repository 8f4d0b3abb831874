"""One look for all pictures: Okabe-Ito colors, and told apart without color by line and marker."""
import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402  (after the choice of a backend without screen)

pyplot.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
                        "figure.constrained_layout.use": True, "figure.titlesize": 9})
STYLE = {  # of the algorithms, everywhere the same
    "linear": {"color": "#999999", "linestyle": (0, (1, 1)), "marker": "x"},
    "neural-linear": {"color": "#000000", "linestyle": "-", "marker": "o"},
    "both-priors": {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    "mu-prior": {"color": "#56B4E9", "linestyle": ":", "marker": "D"},
    "no-prior": {"color": "#CC79A7", "linestyle": (0, (5, 1)), "marker": "v"},
    "carried": {"color": "#0072B2", "linestyle": "-.", "marker": "^"},
    "perfect-prior": {"color": "#009E73", "linestyle": (0, (3, 1, 1, 1)), "marker": "*"},
}
STYLES = list(STYLE.values())[1:]


def panels(title, n=3):
    """A row of panels with logarithmic y axes under one caption line."""
    figure, axes = pyplot.subplots(1, n, figsize=(4 * n, 3.9))
    figure.suptitle(title, fontsize=10)
    for axis in axes:
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
    return figure, axes


def curve(axis, i, x, y, label, error=None, **options):
    """A line with error bars in the i-th style."""
    options = STYLES[i] | {"markersize": 4, "capsize": 2} | options
    axis.errorbar(x, y, error, label=label, **options)
