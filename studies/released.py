"""The paper's table as the program that its authors released plays it, and as we read the paper.

studies/released_agents.py lists what the program does that the paper does not say. No reading
explains why in the paper both priors earn less than no prior on Jester and Smartphones, and more on
Mushroom; its standard deviations on Covertype and Statlog; and the mean on Census without a prior,
1943.83, which 50 whole numbers cannot have. The program has no constant feature, but its rule for
the last entry of mu0 fits one.
"""
from dataclasses import replace

import nlts
from lab import paper
from lab import report as lab
from lab.recipes import RECIPES
from lab.results import execute, make_runs
from lab.runs import Recipe
from lab.statistics import grouped
from studies.released_agents import Biased, Released, mislabelled, mislabelled_with_intercept

PRIORS = {"both-priors": nlts.likelihood_matching, "mu-prior": nlts.mean_prior,
          "no-prior": nlts.no_prior}
READINGS = {  # as (color, marker, height in its row)
    "as released": ("black", "s", -0.27),
    "as released, SCS": ("#D55E00", "D", -0.09),
    "with constant": ("#2F87BC", "o", 0.09),
    "careful": ("white", "^", 0.27),
}
SOLVED = "as released, SCS"
SCS = "mushroom", "adult", "statlog", "epileptic"     # where Eq. 6 is solved as printed, too


def released(name, d, **arguments):
    """The recipe of an algorithm as the released program has it."""
    if name == "linear":
        recipe = RECIPES["linear"]
        return replace(recipe, problem=mislabelled_with_intercept) if d == "scania" else recipe
    if name in PRIORS:
        arguments |= {"prior": PRIORS[name]}
    recipe = Recipe(Released, 100 if name in PRIORS else None, arguments, network=Biased)
    return replace(recipe, problem=mislabelled) if d == "scania" else recipe


def readings(name, d):
    """{reading: recipe}: linear has no constant feature to gain."""
    found = {"as released": released(name, d), "careful": RECIPES[name]}
    if name != "linear":
        found["with constant"] = released(name, d, constant=True)
    if name == "both-priors" and d in SCS:
        found["as released, SCS"] = released(name, d, solver="SCS")
    return found


def measure(options):
    """Rewards in each reading: the runs are those of the table."""
    return execute(options, [
        run for d in options.datasets for name in options.algorithms
        for reading, recipe in readings(name, d).items()
        for run in make_runs(options, d, name, recipe, variant=reading, experiment="table")])


def cells_of(results):
    """{reading: {(data set, algorithm): rewards}} of the paper's cells."""
    cells = {reading: {} for reading in READINGS}
    for d, own in grouped(results, "dataset", "algorithm", "variant").items():
        for name, by_reading in own.items():
            for reading, rewards in by_reading.items():
                cells[reading][d, name] = rewards
            if name == "linear":                      # it has no constant to gain
                cells["with constant"][d, name] = by_reading["as released"]
    return cells


def report(results):
    """How near each reading is to the paper; the readings beside the paper's numbers."""
    cells = cells_of(results)
    near = {reading: lab.near_paper(own) for reading, own in cells.items() if own}
    words = ", ".join(f"{reading} {counts['comparable', 'within 3 %']}"
                      for reading, counts in near.items() if reading != SOLVED)
    rows = [[reading, *counts.values()] for reading, counts in near.items()]
    header = ["cells near the paper's", "comparable data sets: |z| < 2", "within 3 %",
              "all: |z| < 2", "within 3 %"]
    sets = ", ".join(map(lab.title, SCS))
    return lab.page(
        lab.wrapped("Cells within 3 % of the paper's on the comparable data sets "
                    f"({lab.runs_of(results)}): {words}."),
        lab.text_table(header, rows) + "\n" + lab.wrapped(
            f"|z| < 2: with the standard errors of both means. {SOLVED}: both-priors on {sets}."),
        rewards_text(results, cells), lab.played_text(results))


def rewards_text(results, cells):
    """Rewards in each reading below the paper's."""
    names = list(grouped(results, "algorithm"))
    rows = []
    for d in grouped(results, "dataset"):
        rows.append([lab.title(d), *(paper.cell(paper.number(d, name)) for name in names)])
        for reading, own in cells.items():
            row = [lab.mean_sd(own[d, name]) if (d, name) in own else "" for name in names]
            if any(row):
                rows.append([f"  {reading}", *row])
    return lab.text_table(["reward: in the paper", *names], rows) + (
        f"\nmean ± standard deviation of {lab.runs_of(results)}, in the paper of {paper.RUNS}")


def plot(results):
    """Reward in percent of the paper's: a panel per algorithm, a row per data set."""
    cells = cells_of(results)
    sets, names = list(grouped(results, "dataset")), list(grouped(results, "algorithm"))
    figure, axes = lab.pyplot().subplots(1, len(names), sharey=True, squeeze=False,
                                         figsize=(1.4 + 1.5 * len(names), 1.5 + 0.4 * len(sets)))
    for axis, name in zip(axes[0], names, strict=True):
        for row, d in enumerate(sets):
            mean, sd = paper.number(d, name)
            axis.barh(row, 200 * sd / mean, 0.8, 100 - 100 * sd / mean, color="0.88", zorder=0,
                      label="" if row else "the paper ± its standard deviation")
        for reading, (color, marker, shift) in READINGS.items():
            own = {d: cells[reading][d, name] for d in sets if (d, name) in cells[reading]}
            ratios = [100 * x.mean() / paper.number(d, name)[0] for d, x in own.items()]
            axis.plot(ratios, [sets.index(d) + shift for d in own], marker, color=color,
                      markersize=5, markeredgecolor="black", markeredgewidth=0.8, label=reading)
        axis.axvline(100, color="black", linewidth=0.8)
        axis.use_sticky_edges = False                 # no marker is cut at the edge of a bar
        axis.autoscale(axis="x")
        axis.set_title(name, fontsize=9)
        axis.set_yticks(range(len(sets)), map(lab.title, sets))
        axis.set_ylim(len(sets) - 0.5, -0.5)
    axes[0, len(names) // 2].set_xlabel("reward, % of the paper's; each panel has its own scale")
    figure.legend(*axes[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("The paper's table, as its program was released and as we read the paper: mean "
                    f"of {lab.runs_of(results)}")
    return {"": figure}
