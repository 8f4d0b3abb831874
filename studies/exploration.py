"""How much exploration costs, and why limited memory wins on some data sets.

The noise prior Inv-Gamma(6, b0) is changed and nothing else; `pooled` learns the scale of the noise
from all arms. Then, once the noise is right, what a prior is worth: full memory, the paper's prior,
ours and none, all with the settings of `recommended`.
"""
from dataclasses import replace

import numpy as np

import nlts_beyond
from lab import paper, report
from lab.recipes import RECIPES, RECOMMENDED, WHEEL_PHASES
from lab.report import mean_sd, plus_minus, problem_of, text_table
from lab.runs import execute, make_task
from lab.statistics import LEVEL, grouped, holm, p_value, paired

EXPLORED = "neural-linear", "both-priors", "carried", "no-prior"
NOISE = {"b⁰ = 6": {"b0": 6.0}, "b⁰ = 0.6": {"b0": 0.6}, "b⁰ = 0.06": {"b0": 0.06}, "pooled": {}}
SETS = "statlog", "census", "mushroom", "adult", "financial", "jester", "smartphones", "wheel"
WORTH = "pooled, as recommended"
DELTA = 0.5                                           # of the wheel


def pooled(name):
    """The recipe of an algorithm with pooled noise."""
    recipe = RECIPES[name]
    noise = {"noise": nlts_beyond.pooled_noise}
    return replace(recipe, arguments=recipe.arguments | noise)


def measure(o):
    """Rewards under four kinds of noise; then, with `recommended`'s settings, of four memories."""
    tasks = []
    for d in [d for d in SETS if d in o.datasets]:
        wheel = {"delta": DELTA, "steps": min(o.steps, 4000)} if d == "wheel" else {}
        phases = WHEEL_PHASES if d == "wheel" else {}
        for name in o.algorithms:
            for noise, hyper in NOISE.items():
                recipe = pooled(name) if noise == "pooled" else RECIPES[name]
                tasks.append(make_task(o, d, name, variant=noise, recipe=recipe,
                                       hyper=phases | hyper, **wheel))
    tasks += [make_task(o, d, name, variant=WORTH, recipe=pooled(name), hyper=RECOMMENDED)
              for d in paper.TABLE if d in o.datasets for name in o.algorithms]
    return execute(o, tasks)


def by_noise(lines):
    """{noise: {problem, named: {algorithm: rewards}}}."""
    return grouped([line | {"problem": problem_of(line)} for line in lines],
                   "variant", "problem", "algorithm")


def tell(lines):
    """Under each noise, what limited memory gains over full; what the noise is worth; then what a
    prior is worth."""
    rewards = by_noise(lines)
    names = list(grouped(lines, "algorithm"))
    parts = []
    for noise, sets in rewards.items():
        if "neural-linear" in names and len(names) > 1:
            title = noise if noise != WORTH else "what a prior is worth"
            parts.append(report.minus_text(title, sets, "neural-linear"))
            if noise == WORTH:
                parts[-1] += (f"\nall of them with pooled noise and {described(RECOMMENDED)}\n"
                              + worth_text(sets))
                parts.append(report.lowest_text(sets))
    if {"b⁰ = 6", "pooled"} <= set(rewards):
        parts.append(noise_text(rewards["pooled"], rewards["b⁰ = 6"]))
    return "\n\n".join([*parts, explored_text(lines)])


def described(hyper):
    """'L = 100, P = 200'."""
    return ", ".join(f"{name.replace('_', ' ')} = {value}" for name, value in hyper.items())


def noise_text(pooled, plain):
    """What the noise rule gains."""
    rows = [[d, *(plus_minus(*paired(own[name], plain[d][name])) for name in own)]
            for d, own in pooled.items()]
    names = list(next(iter(pooled.values())))
    return text_table(["pooled noise − b⁰ = 6", *names], rows) + (
        "\npaired by run, ± standard error")


def worth_text(sets):
    """On how many data sets ours earns more, and less, than each other memory."""
    if not all("carried" in own for own in sets.values()):
        return ""
    pairs = [(other, d) for other in EXPLORED if other != "carried" for d, own in sets.items()
             if other in own]
    found = [(*paired(sets[d]["carried"], sets[d][other]), len(sets[d][other]))
             for other, d in pairs]
    sure = holm([p_value(*one) for one in found]) <= LEVEL
    lines = []
    for other in dict.fromkeys(other for other, _ in pairs):
        gains = [gain for (name, _), (gain, *_), s in zip(pairs, found, sure, strict=True)
                 if name == other and s]
        lines.append(f"carried against {other}: more on {sum(np.array(gains) > 0)} of {len(sets)} "
                     f"data sets, less on {sum(np.array(gains) < 0)}")
    return "\n".join([*lines, "at 5 %, t-test with Holm's correction for all of these differences"])


def explored_text(lines):
    """The measured share of exploration: a row per problem and noise."""
    shares = grouped([line | {"problem": problem_of(line)} for line in lines],
                     "problem", "variant", "algorithm", value="explored")
    names = list(grouped(lines, "algorithm"))
    rows = [[f"{d}, {noise}", *(mean_sd(100 * np.array(own[name], float), 1) for name in names)]
            for d, noises in shares.items() for noise, own in noises.items()]
    return text_table(["exploration, %", *names], rows) + (
        "\nexploration: plays, after the initial pulls, of another arm than the one with the "
        "highest posterior mean")


def draw(lines):
    """Reward minus full memory's against the noise: a panel per problem, a line per prior."""
    rewards = {noise: sets for noise, sets in by_noise(lines).items() if noise in NOISE}
    first = next(iter(rewards.values()))
    names = [name for name in EXPLORED[1:] if name in next(iter(first.values()))]
    if not names or "neural-linear" not in next(iter(first.values())):
        return {}
    rows, columns = -(-len(first) // 4), min(4, len(first))
    figure, axes = report.pyplot().subplots(rows, columns, figsize=(2.8 * columns, 2.6 * rows),
                                            squeeze=False)
    for panel, d in zip(axes.flat, first, strict=False):
        for name in names:
            pairs = [(sets[d][name], sets[d]["neural-linear"]) for sets in rewards.values()]
            gains = [paired(100 * (own - full) / full.mean()) for own, full in pairs]
            value, error = np.nan_to_num(np.transpose(gains), posinf=0)
            ticks = [f"{NOISE[noise]['b0']:g}" if NOISE[noise] else noise for noise in rewards]
            report.curve(panel, ticks, value, error, RECIPES[name].label, name)
        panel.axhline(0, color="black", linewidth=0.8)
        panel.set(title=d, xlabel="b⁰ of Inv-Gamma(6, b⁰), or pooled")
    for panel in axes.flat[len(first):]:
        panel.remove()
    figure.supylabel("reward minus full memory's, %", fontsize=9)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("Reward under four noises, minus full memory's: mean of "
                    f"{report.runs_of(lines)} ± 1 standard error; each panel has its own scale")
    return {"exploration": figure}
