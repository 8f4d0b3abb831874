"""How certain each prior is, beside what full memory would say; and what that earns.

After a learning phase, a prior Phi0 stands for the tuples that left the buffer. Full memory would
have kept them: lam I + sum of phi phi' over those tuples, under the features of the moment. What is
compared is s = sqrt(phi'(precision)⁻¹ phi) on those tuples: below full memory's, the prior is too
certain; above, it has forgotten.
"""
import numpy as np

from lab import report as lab
from lab.recipes import RECIPES, limited
from lab.report import text_table, title
from lab.results import execute, make_runs
from lab.statistics import difference, grouped, judged
from studies.calibration_agents import Calibration, kept_prior

PLAYED = "both-priors", "printed", "carried", "kept", "no-prior", "perfect-prior"
LABELS = {"kept": "old covariance kept"}
PRINTED = "mushroom", "adult", "statlog"              # where `printed` is measured


def measure(options):
    """Rewards and calibration: the runs are the first ones of the table."""
    runs = []
    for d in options.datasets:
        for name in PLAYED:
            if name != "printed" or d in PRINTED:
                recipe = RECIPES.get(name) or limited(kept_prior)
                runs += make_runs(options, d, name, recipe, observer=Calibration,
                                  experiment="table")
    return execute(options, runs)


def report(results):
    """How certain each prior is, beside full memory; what it earns."""
    ratios, off = (by_set(results, value) for value in ("bias", "error"))
    names = [name for name in PLAYED if any(name in own for own in ratios.values())]
    nearest = [min(own, key=own.get) for own in off.values()]
    certain = [d for d, own in ratios.items() if own["both-priors"] < 1]
    rewards = grouped(results, "dataset", "algorithm")
    found = judged({(d, name): difference(own[name], own["perfect-prior"])
                    for d, own in rewards.items() for name in own if name != "perfect-prior"})
    signs = [one.sign for (_, name), one in found.items() if name == "both-priors"]
    rows = [[title(d), *(f"× {own[name]:.2f} (× {off[d][name]:.2f})" if name in own else ""
                         for name in names)] for d, own in ratios.items()]
    return "\n\n".join([
        lab.wrapped(f"carried is nearest to full memory's s on {nearest.count('carried')} of "
                    f"{len(nearest)} data sets. both-priors is more certain than full memory on "
                    f"{len(certain)}, and earns more than perfect-prior on {signs.count(1)}, less "
                    f"on {signs.count(-1)}."),
        text_table(["s relative to full memory", *names], rows)
        + "\nOn tuples that left the buffer, geometric mean over phases and arms: below 1, more "
        "certain than full\nmemory. In brackets the factor by which s is off, whatever the side.",
        lab.difference_table("reward − perfect-prior's", found, {d: title(d) for d in rewards},
                             {name: name for name in names}), lab.played_text(results)])


def by_set(results, value):
    """{data set: {prior: factor of s}}: results have the logarithm of s²."""
    measured = [result for result in results if result[value] is not None]
    return {d: {name: float(np.exp(x.mean() / 2)) for name, x in own.items()}
            for d, own in grouped(measured, "dataset", "algorithm", value=value).items()}


def plot(results):
    """s of each prior relative to full memory: a row per data set."""
    ratios = by_set(results, "bias")
    names = [name for name in PLAYED if any(name in own for own in ratios.values())]
    figure, axis = lab.pyplot().subplots(figsize=(8.6, 1.6 + 0.5 * len(ratios)))
    for k, name in enumerate(names):
        rows = [row + 0.15 * (k - (len(names) - 1) / 2) for row, own in enumerate(ratios.values())
                if name in own]
        values = [own[name] for own in ratios.values() if name in own]
        axis.plot(values, rows, label=LABELS.get(name) or lab.label(name), markersize=6,
                  **lab.style(name) | {"linestyle": "none"})
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter("× {x:g}")
    axis.axvline(1, color="black", linewidth=0.8)
    for row in range(1, len(ratios)):
        axis.axhline(row - 0.5, color="0.85", linewidth=0.8)
    axis.set_yticks(range(len(ratios)), map(title, ratios))
    axis.set_ylim(len(ratios) - 0.5, -0.5)
    axis.set_xlabel("s relative to full memory, on tuples that left the buffer\n"
                    "← more certain than full memory          less certain →")
    figure.legend(loc="outside lower center", ncols=3)
    figure.suptitle(f"Geometric mean of {lab.runs_of(results)}")
    return {"": figure}
