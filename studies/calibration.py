"""How certain each prior is, compared with full memory; and what that earns.

After a learning phase, a prior Phi0 stands for the tuples that left the buffer. Full memory would
have kept them: lam I + sum of phi phi' over those tuples, under the features of the moment. What is
compared is s = sqrt(phi'(precision)⁻¹ phi) on those tuples: below full memory's, the prior is too
certain; above, it has forgotten.
"""
import numpy as np

from lab import report as lab
from lab.recipes import RECIPES, limited
from lab.results import execute, make_runs
from lab.statistics import grouped, judge_rewards
from studies.calibration_agents import Calibration, kept_prior

PLAYED = "both-priors", "printed", "carried", "kept", "no-prior", "perfect-prior"
PERFECT = "perfect-prior"                             # forgets nothing
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
    """How certain each prior is, relative to full memory, and what it earns."""
    ratios, off = (factors(results, value) for value in ("bias", "error"))
    names = [name for name in PLAYED if any(name in own for own in ratios.values())]
    nearest = [min(own, key=own.get) for own in off.values()]
    spread = {name: [own[name] for own in ratios.values() if name in own] for name in names}
    ranges = [f"{name} × {min(x):.2f} to {max(x):.2f} on {len(x)}" for name, x in spread.items()]
    found = judge_rewards(results, [(name, PERFECT) for name in names])
    counts = [f"{name} earns {lab.counted(found, (name, PERFECT))}"
              for name in ("both-priors", "carried")]
    rows = [[lab.title(d), *(f"× {own[name]:.2f} (× {off[d][name]:.2f})" if name in own else ""
                             for name in names)] for d, own in ratios.items()]
    return lab.page(
        lab.wrapped("Uncertainty s about forgotten tuples, relative to full memory's, by data "
                    f"set: {', '.join(ranges)}. carried is nearest on "
                    f"{nearest.count('carried')} of {len(nearest)}. Rewards against a prior that "
                    f"forgets nothing ({lab.runs_of(results)}): {'; '.join(counts)}."),
        lab.text_table(["s relative to full memory", *names], rows) + "\n" + lab.wrapped(
            "On tuples that left the buffer, geometric mean over phases, arms and runs: below 1, "
            "more certain than full memory. In brackets the factor by which s is off, whatever the "
            "side. kept: the old covariance, as if no feature had moved."),
        lab.difference_table("reward gained", found), lab.played_text(results))


def factors(results, value):
    """{data set: {prior: factor of s}}; results have logarithms of s²."""
    measured = [result for result in results if result[value] is not None]
    return {d: {name: float(np.exp(x.mean() / 2)) for name, x in own.items()}
            for d, own in grouped(measured, "dataset", "algorithm", value=value).items()}


def plot(results):
    """s of each prior relative to full memory: a row per data set."""
    ratios = factors(results, "bias")
    names = [name for name in PLAYED if any(name in own for own in ratios.values())]
    figure, axis = lab.pyplot().subplots(figsize=(8.6, 1.6 + 0.5 * len(ratios)))
    for k, name in enumerate(names):
        rows = [row + 0.15 * (k - (len(names) - 1) / 2) for row, own in enumerate(ratios.values())
                if name in own]
        values = [own[name] for own in ratios.values() if name in own]
        axis.plot(values, rows, label=lab.label(name), markersize=6,
                  **lab.style(name) | {"linestyle": "none"})
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter("× {x:g}")
    axis.axvline(1, color="black", linewidth=0.8)
    for row in range(1, len(ratios)):
        axis.axhline(row - 0.5, color="0.85", linewidth=0.8)
    axis.set_yticks(range(len(ratios)), map(lab.title, ratios))
    axis.set_ylim(len(ratios) - 0.5, -0.5)
    axis.set_xlabel("uncertainty s about forgotten tuples, relative to full memory's\n"
                    "← more certain than full memory          less certain →")
    figure.legend(loc="outside lower center", ncols=3)
    figure.suptitle(f"How certain each prior is: geometric mean of {lab.runs_of(results)}")
    return {"": figure}
