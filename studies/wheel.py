"""Appendix B, Table 2: the wheel, a synthetic problem that wants exploration."""
from dataclasses import replace
from functools import partial

import numpy as np

import nlts
from datasets import delta_of
from lab import paper
from lab import report as lab
from lab.own import algorithms
from lab.recipes import RECIPES, WHEEL, at_equal_settings, with_arguments, with_settings
from lab.results import execute, make_runs
from lab.runs import Values
from lab.statistics import grouped, judge_rewards
from studies.ablation_agents import counted_twice

PAPERS = "linear", "neural-linear", "both-priors", "printed", "carried"
MOST = {"printed": 10}                                # runs
SHOWN = "wheel-0.5"                                   # whose first run is drawn
VARIANTS = {  # other readings of the paper's method
    "b⁰ = 0.6": with_settings(RECIPES["both-priors"], b0=0.6),
    "b⁰ = 0.06": with_settings(RECIPES["both-priors"], b0=0.06),
    "buffer counted twice": with_arguments(
        RECIPES["both-priors"], prior=partial(counted_twice, prior=nlts.likelihood_matching)),
}
EQUAL = "equal settings"
SAFE = 0.2                                            # what the safe arm pays per step
ARMS = [  # color and marker of each arm; the last one is safe
    ("#0060A0", "^"), ("#D55E00", "s"), ("#00795A", "v"), ("#B0528B", "D"), ("#8C8C8C", "o")]


def measure(options):
    """Rewards for three radii: at the paper's settings, in other readings, at equal settings."""
    own = algorithms(replace(options, algorithms=PAPERS))
    runs = []
    for d in options.datasets:
        for name, recipe in own.items():
            recipe = with_settings(recipe, **WHEEL)
            for run in make_runs(options, d, name, recipe, MOST.get(name)):
                drawn = d == SHOWN and run.run == 0
                runs.append(replace(run, observer=Values) if drawn else run)
        for variant, recipe in VARIANTS.items():
            runs += make_runs(options, d, "both-priors", with_settings(recipe, **WHEEL),
                              variant=variant)
        for name in ("linear", "neural-linear", "both-priors", "carried"):
            runs += make_runs(options, d, name, at_equal_settings(RECIPES[name]), variant=EQUAL)
    return execute(options, runs)


# Report -------------------------------------------------------------------------------------------

def judge(results):
    """{(pair, data set): Judged} of each reading and linear at the same settings."""
    own = lab.own_pairs(results)
    results = lab.named(results)
    pairs = [(name, f"linear, {EQUAL}" if name.endswith(EQUAL) else "linear")
             for name in grouped(results, "algorithm") if not name.startswith("linear")]
    return judge_rewards(results, pairs + own)


def report(results):
    """Rewards beside the paper's, and its claim that limited memory earns more than linear."""
    found = judge(results)
    results = lab.named(results)
    return lab.page(
        answer(found, results), rewards_table(results, grouped(results, "dataset", "algorithm")),
        lab.difference_table("reward gained", found, digits=1),
        lab.wrapped("Other b⁰, and the buffer counted twice, change both-priors only: linear keeps "
                    "the paper's settings, or has equal ones, too."), lab.played_text(results))


def answer(found, results):
    """Of which readings the paper's claim certainly holds."""
    signs = {}
    for ((name, other), _), one in found.items():
        if other.startswith("linear") and not name.startswith("neural-linear"):
            signs.setdefault(name, set()).add(one.sign)
    holds = [name for name, own in signs.items() if own == {1}]
    return lab.wrapped(
        "The paper's claim is that limited memory earns more than linear at each δ. Of "
        f"{len(signs)} readings and settings it certainly holds ({lab.runs_of(results)}) for "
        f"{len(holds)}: {'; '.join(holds) or 'none'}.")


def rewards_table(results, rewards):
    """A row per reading, a column per radius; below linear and the paper's method its numbers."""
    rows = []
    for name in grouped(results, "algorithm"):
        rows.append([name, *(lab.mean_sd(own[name], 1) if name in own else ""
                             for own in rewards.values())])
        theirs = [paper.cell(paper.number(d, name)) for d in rewards]
        if any(theirs):
            rows.append(["  in the paper", *theirs])
    return lab.text_table(["reward", *map(lab.title, rewards)], rows) + (
        f"\nmean ± standard deviation of {lab.runs_of(results)}; always playing the safe arm earns "
        f"{SAFE * results[0]['steps']:.0f}")


def claims(results):
    """What is certain of the paper's claim."""
    found = judge(results)
    signs = {name: [one.sign for (pair, _), one in found.items() if pair == (name, "linear")]
             for name in paper.METHOD}
    radii = f"{len(paper.WHEEL)} of {len(paper.WHEEL)} δ"
    yield ("limited memory earns more than linear", "Appendix B, Table 2", radii, signs,
           max((one.runs for one in found.values()), default=0))


# Picture ------------------------------------------------------------------------------------------

def best_arms(contexts, delta):
    """The arm that pays most in each context: arm i + 1 in quadrant i of the disc, else the safe
    one."""
    x, y = np.transpose(contexts)[:2]                 # linear has a constant feature, too
    quadrant = (np.arctan2(y, x) % (2 * np.pi) // (np.pi / 2)).astype(int) % 4
    return np.where(np.hypot(x, y) <= delta, quadrant, len(ARMS) - 1)


def plot(results):
    """The arm that each algorithm thinks best in the end: a map per algorithm."""
    shown = {result["algorithm"]: result for result in results
             if result["dataset"] == SHOWN and "expected" in result}
    if not shown:
        return {}
    first = next(iter(shown.values()))
    right = best_arms(first["contexts"], delta_of(SHOWN))
    maps = {"best arm": right}
    maps |= {lab.label(name): np.argmax(x["expected"], 1) for name, x in shown.items()}
    columns = -(-len(maps) // 2)
    figure, axes = lab.pyplot().subplots(2, columns, figsize=(2.6 * columns, 5.9), sharex=True,
                                         sharey=True, subplot_kw={"aspect": "equal"})
    x, y = np.transpose(first["contexts"])[:2]
    for panel, (text, chosen) in zip(axes.flat, maps.items(), strict=False):
        for arm, (color, marker) in enumerate(ARMS):
            mine = chosen == arm
            name = f"arm {arm + 1}" + (", safe" if arm == len(ARMS) - 1 else "")
            panel.scatter(x[mine], y[mine], s=14, color=color, marker=marker, linewidths=0,
                          label=name)
        panel.add_patch(lab.pyplot().Circle((0, 0), delta_of(SHOWN), fill=False, linewidth=1))
        share = "" if chosen is right else f"\nright in {100 * np.mean(chosen == right):.0f} %"
        panel.set_title(text + share, fontsize=9)
        panel.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    for panel in axes.flat[len(maps):]:
        panel.remove()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5,
                  markerscale=1.6)
    figure.suptitle(f"{lab.title(SHOWN)}: the arm that is thought best after {first['steps']} "
                    f"steps, one run, {len(x)} contexts")
    return {"": figure}
