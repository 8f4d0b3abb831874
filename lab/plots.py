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


def curve(axis, x, y, error, label, style):
    """A line with error bars, in the style of an algorithm."""
    axis.errorbar(x, y, error, label=label, markersize=4, capsize=2, **STYLE[style])
