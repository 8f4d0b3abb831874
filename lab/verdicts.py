"""What the results say about the paper's claims and about our goals, as text."""
import numpy as np

from lab import paper
from lab.agents import ALGORITHMS
from lab.text import SURE, goal, mean_sd, paired, plus_minus, share, text_table, verdict

PEAKS = {"both-priors": ("<=", 1.25), "no-prior": (">", 1.25), "carried": ("<=", 1.0)}
EXPLORED = "neural-linear", "both-priors", "carried", "no-prior"
GOALS = "goal", "wanted", "measured", ""


def name_of(dataset):
    """How a data set is called in a table."""
    return dataset.rsplit("/", 1)[-1].removesuffix(".csv").capitalize()


def by_dataset(lines):
    """{data set: {algorithm: rewards by run}} of sorted lines."""
    rewards = {}
    for line in lines:
        own = rewards.setdefault(line["dataset"], {})
        own.setdefault(line["algorithm"], []).append(line["reward"])
    return {d: {name: np.array(r) for name, r in own.items()} for d, own in rewards.items()}


def complete(rewards):
    """The data sets on which all seven algorithms have at least two runs."""
    return {d: own for d, own in rewards.items()
            if set(ALGORITHMS) <= set(own) and len(own["linear"]) > 1}


def claims_table(claims, values, theirs, unit="reward gained"):
    """A row for each claim whose algorithms were played: what the better gains, here and in print.
    values: {name: by run}; theirs: {name: (mean, sd)}."""
    rows = []
    for better, worse, slack in claims:
        if better in values and worse in values:
            gain, error = paired(values[better], values[worse])
            text = f"{better} as good as {worse} ({slack:.0%})" if slack else f"{better} > {worse}"
            found = verdict(gain, error, -slack * abs(values[worse].mean()))
            known = better in theirs and worse in theirs
            printed = f"{theirs[better][0] - theirs[worse][0]:+.1f}" if known else ""
            rows.append([text, plus_minus(gain, error, 1), printed, found])
    column = "in the paper" if theirs else ""         # which prints no number of its figure
    return text_table(["the paper's claims, and ours", unit, column, ""], rows) + (
        "\npaired by run; supported, or not: by more than two standard errors")


def around(regret, L, width=50):
    """Regret in the steps before and after a retraining, by run: two arrays. They are means of all
    retrainings but the first: until then nothing has left the buffer."""
    phases = range(L, regret.shape[1] - width + 1, L)
    phases = phases[1:] or phases
    before = np.mean([regret[:, p - width:p].sum(1) for p in phases], axis=0)
    after = np.mean([regret[:, p:p + width].sum(1) for p in phases], axis=0)
    return before, after


def forgetting(regret, L):
    """Sec. 4.1: the figure in numbers, the paper's claims about it, and our goals."""
    rows, goals, gained = [], [], {}
    for name, r in regret.items():
        before, after = around(r, L)
        ratio = after.mean() / max(before.mean(), 1e-9)
        gained |= {name: -r.sum(1), f"{name} after retraining": -after,
                   f"{name} in steps {L} to {2 * L}": -r[:, L:2 * L].sum(1)}
        rows.append([name, mean_sd(r.sum(1)), f"{before.mean():.2f}", f"{after.mean():.2f}",
                     f"{ratio:.2f}"])
        if name in PEAKS:
            sign, bound = PEAKS[name]
            met = (ratio > bound) == (sign == ">")
            goals.append(goal(f"{name}: after / before", f"{sign} {bound}", f"{ratio:.2f}", met))
    header = ["Statlog", "regret", "before", "after retraining", "ratio"]
    note = f"\nmean ± sd of {len(r)} runs; before, after: 50 steps around retrainings but the first"
    return "\n\n".join([text_table(header, rows) + note,
                        claims_table(paper.CLAIMS["forgetting"], gained, {}, "regret saved"),
                        text_table(GOALS, goals)])


def table(lines, rewards):
    """Sec. 4.2: rewards, two kinds of forgetting, the paper's claims, ours, and our goals."""
    parts = [rewards_text(lines, rewards)]
    whole = complete(rewards)
    if whole:
        parts += [kinds_text(whole), claims_text(whole), minus_text("ours", whole, "carried"),
                  goals_text(whole)]
    seconds = {}
    for line in lines:
        seconds.setdefault(line["config"], []).append(line["seconds"])
    hours = paper.RUNS * sum(map(np.median, seconds.values())) / 3600 / 2
    time = goal(f"{paper.RUNS} runs of each on two cores, by the median run", "<= 2 h",
                f"{hours:.1f} h", hours <= 2)
    return "\n\n".join([*parts, text_table(GOALS, [time])])


def rewards_text(lines, rewards):
    """Mean and standard deviation of the reward, ours and below it the paper's."""
    steps = {line["dataset"]: line["steps"] for line in lines}
    rows = []
    for d, own in rewards.items():
        rows.append([name_of(d), steps[d], lines[-1]["run"] + 1, *map(mean_sd, own.values())])
        if d in paper.TABLE:
            cells = [paper.cell(paper.number(d, name)) for name in own]
            rows.append(["  in the paper", 5000, paper.RUNS, *cells])
    return text_table(["reward", "steps", "runs", *own], rows) + "\nmean ± standard deviation"


def kinds(own):
    """Reward lost by the network and by the posterior, by run."""
    return own["neural-linear"] - own["perfect-prior"], own["perfect-prior"] - own["no-prior"]


def won_back(own, name):
    """The share of what the posterior forgets that a prior wins back, and its standard error."""
    return share(own[name] - own["no-prior"], own["perfect-prior"] - own["no-prior"])


def kinds_text(rewards):
    """Two kinds of forgetting, the paper's prior and ours apart."""
    rows, shares = [], []
    for d, own in rewards.items():
        lost = [plus_minus(*paired(x)) for x in kinds(own)]
        back = 100 * np.array([won_back(own, name) for name in ("both-priors", "carried")])
        rows.append([name_of(d), *lost, *(f"{value:.0f} ± {error:.0f} %" for value, error in back)])
        shares.append(back[:, 0])
    rows.append(["Median", "", "", *(f"{value:.0f} %" for value in np.median(shares, 0))])
    header = ["two kinds of forgetting", "by the network", "by the posterior",
              "won back: the paper's", "ours"]
    return text_table(header, rows) + (
        "\nby the network: full memory - perfect prior; by the posterior: perfect prior - no prior")


def above(rewards, better, *others, errors=0):
    """On how many data sets one beats all others, by more than so many standard errors."""
    count = 0
    for own in rewards.values():
        gains = [paired(own[better], own[other]) for other in others]
        count += all(gain > errors * error for gain, error in gains)
    return count


def claims(rewards):
    """Each claim of Sec. 4.2: what the better gains here in pairs, in the paper, and a verdict."""
    for better, worse in paper.CLAIMS["table"]:
        here = {d: paired(own[better], own[worse]) for d, own in rewards.items()}
        theirs = {d: paper.number(d, better)[0] - paper.number(d, worse)[0]
                  for d in rewards if d in paper.TABLE}
        held = {d for d, (gain, error) in here.items() if gain > SURE * error}
        where = paper.NONLINEAR if worse == "linear" else paper.TABLE    # as Sec. 4.2 says
        claimed = {d for d, gain in theirs.items() if gain > 0 and d in where}
        yield f"{better} > {worse}", here, theirs, holds(held, claimed)


def holds(held, claimed):
    """A verdict: on how many of the data sets where the paper has it, and on how many others."""
    both, more = len(held & claimed), len(held - claimed)
    found = {0: "not supported", len(claimed): "supported"}.get(both, "in part")
    found = found if claimed else "not claimed"
    return f"{found}, on {both} of the paper's {len(claimed)} and on {more} more"


def claims_text(rewards):
    """What the paper's claims gain here, and below it in the paper, a column a data set."""
    rows = []
    for claim, here, theirs, found in claims(rewards):
        rows.append([claim, *(plus_minus(*gain) for gain in here.values()), ""])
        if theirs:                                    # not of a table of one's own
            rows[-1][-1] = found
            rows.append(["  in the paper", *(f"{x:+.0f}" for x in theirs.values()), ""])
    return text_table(["the paper's claims", *map(name_of, rewards), ""], rows) + (
        "\npaired by run, ± standard error; on: by more than two, in the paper by its means\n"
        "why limited memory can win here and lose there: exploration.txt, calibration.txt")


def minus_text(title, rewards, base):
    """The reward of one algorithm, and how much more the others earn."""
    rows = []
    for d, own in rewards.items():
        others = [name for name in own if name != base]
        gains = [plus_minus(*paired(own[name], own[base])) for name in others]
        rows.append([name_of(d), mean_sd(own[base]), *gains])
    return text_table([title, base, *(f"{name} -" for name in others)], rows) + (
        f"\n-: minus {base}, paired by run, ± standard error")


def goals_text(rewards):
    """What the paper's method and ours should do here."""
    n, sets = len(rewards), rewards.values()
    near = sum(own["carried"].mean() >= 0.98 * own["neural-linear"].mean() for own in sets)
    below = max(1 - own["carried"].mean() / own["perfect-prior"].mean() for own in sets)
    back = np.median([won_back(own, "carried")[0] for own in sets])
    counts = [("both-priors above mu-prior and no-prior (the paper: 8 of 10)", n,
               above(rewards, "both-priors", "mu-prior", "no-prior")),
              ("both-priors above full memory (the paper: 4 of 10)", 4,
               above(rewards, "both-priors", "neural-linear")),
              ("carried at least as good as mu-prior and no-prior", n,
               above(rewards, "carried", "mu-prior", "no-prior")),
              ("- by more than a standard error", 8,
               above(rewards, "carried", "mu-prior", "no-prior", errors=1)),
              ("carried within 2 % of full memory, or better", 7, near)]
    goals = [goal(text, f">= {least}", f"{count} of {n}", count >= least)
             for text, least, count in counts]
    goals += [goal("carried wins back, median", ">= 100 %", f"{100 * back:.0f} %", back >= 0.995),
              goal("carried below the perfect prior, at most", "<= 4 %", f"{100 * below:.1f} %",
                   below <= 0.04)]
    for d in [d for d in rewards if d in paper.TABLE]:
        mean, sd = paper.number(d, "both-priors")
        ours = rewards[d]["both-priors"].mean()
        goals.append(goal(f"both-priors on {name_of(d)}: the paper's number, within its sd",
                          f"{mean:g} ± {sd:g}", f"{ours:.0f}", abs(ours - mean) <= sd))
    return text_table(GOALS, goals)


def amazon(rewards, steps, ratings):
    """Sec. 4.3: Thompson sampling against the best epsilon-greedy."""
    best = max((name for name in rewards if name.startswith("ε=")),
               key=lambda name: rewards[name].mean())
    rows = [[name, mean_sd(r, 1), paper.cell(paper.AMAZON.get(name))]
            for name, r in rewards.items()]
    always = steps * np.bincount(ratings).max() / len(ratings)
    return "\n".join([
        text_table(["Amazon reviews", "reward", "the paper"], rows),
        f"mean ± standard deviation of {len(rewards[best])} runs of {steps} steps, of "
        f"{len(ratings)} reviews; always playing the commonest rating earns about {always:.0f}\n",
        claims_table(paper.CLAIMS["amazon"], rewards | {"best ε": rewards[best]},
                     paper.AMAZON | {"best ε": paper.AMAZON["ε=0.1"]}),
        f"the best ε: {best}; in the paper ε=0.1"])


def wheel(lines, rewards, of):
    """Appendix B: the wheel beside the paper's numbers; of: the algorithm behind each name."""
    rows, goals, claims, values, printed = [], [], [], {}, {}
    for delta, theirs in paper.WHEEL.items():
        own = rewards[f"wheel {delta}"]
        rows.append([f"δ = {delta}", *(mean_sd(r, 1) for r in own.values())])
        rows.append(["  in the paper", *(paper.cell(theirs.get(name)) for name in own)])
        off = {name: 100 * (own[name].mean() / theirs[of[name]][0] - 1)
               for name in own if of[name] in theirs}
        rows.append(["  off by", *(f"{off[name]:+.1f} %" if name in off else "" for name in own)])
        values |= {f"{name}, {delta}": r for name, r in own.items()}
        printed |= {f"{name}, {delta}": number for name, number in theirs.items()}
        claims += [(f"{name}, {delta}", f"linear, {delta}", 0.0)
                   for name in own if name != "linear"]
        if "both-priors" in own:
            goals.append(goal(f"δ = {delta}: both-priors, off the paper's number", "within 5 %",
                              f"{off['both-priors']:+.1f} %", abs(off["both-priors"]) <= 5))
    runs, safe = lines[-1]["run"] + 1, 0.2 * lines[0]["steps"]
    note = f"\nmean ± standard deviation of {runs} runs; always the safe arm: {safe:.0f}"
    return "\n\n".join([text_table(["wheel", *own], rows) + note,
                        claims_table(claims, values, printed), text_table(GOALS, goals)])


def with_noise(lines, b0):
    """The rewards of runs with this noise prior, as by_dataset."""
    end = f", b⁰ = {b0:g}"
    return by_dataset(line | {"algorithm": line["algorithm"].removesuffix(end)}
                      for line in lines if line["algorithm"].endswith(end))


def exploration(rewards):
    """Whether the paper's prior beats full memory under narrower noise priors: {b0: by_dataset}."""
    parts = []
    for b0, sets in rewards.items():
        parts.append(minus_text(f"b⁰ = {b0:g}", sets, "neural-linear"))
        if all("both-priors" in own for own in sets.values()):
            ahead = above(sets, "both-priors", "neural-linear", errors=SURE)
            parts[-1] += ("\nthe paper's prior beats full memory by more than two standard errors "
                          f"on {ahead} of {len(sets)}")
    return "\n\n".join(parts)
