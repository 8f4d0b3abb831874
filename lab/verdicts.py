"""What the results say about the paper's claims and about our goals, as text."""
import numpy as np

from lab import paper
from lab.agents import ALGORITHMS, label
from lab.text import goal, mean_sd, paired, plus_minus, share, text_table, verdict

CLAIMS = [("both priors beat the μ prior", "both-priors", "mu-prior"),
          ("both priors beat no prior", "both-priors", "no-prior"),
          ("the μ prior beats no prior", "mu-prior", "no-prior"),
          ("both priors beat full memory", "both-priors", "neural-linear"),
          ("both priors beat linear", "both-priors", "linear"),
          ("linear beats full memory", "linear", "neural-linear")]
EXPLORED = "neural-linear", "both-priors", "carried", "no-prior"
NOT_COMPARABLE = """\
- draws: its 50 runs share one draw of the rows, ours draw anew; what one draw may add is not in
  its errors (`spread of draws` above)
- steps: Financial has 3,713 rows, so 3,713 steps; how the paper played 5,000 it does not say
- settings: L and P of its table are not stated, ours are those of Sec. 4.1
- noise: its code books the rewards of forgotten tuples as noise, and counts the buffer twice"""


def name_of(dataset):
    """How a data set is called in a table."""
    return dataset.rsplit("/", 1)[-1].removesuffix(".csv").capitalize()


def by_dataset(lines):
    """{data set: {algorithm: rewards by run}} of sorted lines, data sets in the paper's order."""
    rewards = {}
    for line in sorted(lines, key=lambda line: paper.order(line["dataset"])):
        own = rewards.setdefault(line["dataset"], {})
        own.setdefault(line["algorithm"], []).append(line["reward"])
    return {d: {name: np.array(r) for name, r in own.items()} for d, own in rewards.items()}


def complete(rewards):
    """The data sets on which all seven algorithms have at least two runs, the same for all."""
    chosen = {}
    for d, own in rewards.items():
        runs = {len(own.get(name, [])) for name in ALGORITHMS}
        if len(runs) == 1 and min(runs) > 1:
            chosen[d] = own
    return chosen


# Sec. 4.1 -----------------------------------------------------------------------------------------

def around(regret, L, width=50):
    """Mean regret of a step before and after the retrainings, by run: two arrays (runs,)."""
    phases = range(L, regret.shape[1] - width + 1, L)
    before = np.mean([regret[:, p - width:p].mean(1) for p in phases], axis=0)
    after = np.mean([regret[:, p:p + width].mean(1) for p in phases], axis=0)
    return before, after


def forgetting(regret, L):
    """The figure in numbers, the paper's claims about it, and our goals."""
    runs, steps = next(iter(regret.values())).shape
    total = {name: r.sum(1) for name, r in regret.items()}
    before, after, ratio, rows = {}, {}, {}, []
    for name, r in regret.items():
        before[name], after[name] = around(r, L)
        ratio[name] = after[name].mean() / max(before[name].mean(), 1e-9)
        rows.append([label(name), mean_sd(total[name]), f"{before[name].mean():.4f}",
                     f"{after[name].mean():.4f}", f"{ratio[name]:.2f}"])
    header = ["Statlog", "regret", "a step before", "after retraining", "ratio"]
    text = text_table(header, rows) + (
        f"\nmean ± standard deviation of {runs} runs of {steps} steps; before and after: the 50 "
        "steps around each retraining")
    return "\n\n".join([text, forgetting_claims(total, after), forgetting_goals(ratio)])


def forgetting_claims(total, after):
    """Each claim with the paired difference of the runs."""
    claims = [("full memory beats linear: the data are nonlinear",
               "linear", "neural-linear", total, 0.0),
              ("both priors almost as good as full memory (regret at most 10 % larger)",
               "neural-linear", "both-priors", total, 0.1),
              ("both priors beat the μ prior", "mu-prior", "both-priors", total, 0.0),
              ("both priors beat no prior", "no-prior", "both-priors", total, 0.0),
              ("both priors reduce the peaks after retraining, against no prior",
               "no-prior", "both-priors", after, 0.0),
              ("ours: the carried prior beats the paper's", "both-priors", "carried", total, 0.0),
              ("ours: the carried prior as good as full memory (regret at most 10 % larger)",
               "neural-linear", "carried", total, 0.1)]
    rows = []
    for claim, worse, better, values, slack in claims:
        if worse in values and better in values:
            difference, error = paired(values[worse], values[better])
            found = verdict(difference, error, -slack * values[worse].mean())
            rows.append([claim, f"{difference:+.3g} ± {error:.2g}", found])
    return text_table(["the paper's claims, and ours", "regret saved", ""], rows)


def forgetting_goals(ratio):
    """No peaks after retraining."""
    rows = []
    for name, bound in (("carried", 1.0), ("both-priors", 1.25)):
        if name in ratio:
            rows.append(goal(f"no peaks: {label(name)}", f"ratio <= {bound}", f"{ratio[name]:.2f}",
                             ratio[name] <= bound))
    if "no-prior" in ratio:
        rows.append(goal(f"peaks: {label('no-prior')}", "ratio > 1.25",
                         f"{ratio['no-prior']:.2f}", ratio["no-prior"] > 1.25))
    return text_table(["goal", "", "measured", ""], rows)


# Sec. 4.2 -----------------------------------------------------------------------------------------

def table(lines, rewards, rows):
    """Rewards, two kinds of forgetting, the paper's claims, ours, and our goals."""
    parts = [rewards_text(lines, rewards)]
    whole = complete(rewards)
    if whole:
        parts += [kinds_text(whole), differences_text(whole, "both-priors"), claims_text(whole),
                  numbers_text(whole, lines), differences_text(whole, "carried"),
                  paper_goals(whole), our_goals(whole), not_comparable(whole, rows)]
    return "\n\n".join(part for part in [*parts, seconds_text(lines)] if part)


def rewards_text(lines, rewards):
    """Mean and standard deviation of the reward, ours and below it the paper's."""
    facts = {line["dataset"]: line for line in lines}
    names = [name for name in ALGORITHMS if any(name in own for own in rewards.values())]
    rows = []
    for d, own in rewards.items():
        runs = max(len(r) for r in own.values())
        rows.append([name_of(d), facts[d]["dim"], facts[d]["arms"], facts[d]["steps"], runs,
                     *(mean_sd(own[name]) if name in own else "" for name in names)])
        if d in paper.TABLE:
            cells = [paper.number(d, name) for name in names]
            rows.append(["  the paper", "", "", 5000, paper.RUNS,
                         *(f"{cell[0]:.0f} ± {cell[1]:.0f}" if cell else "" for cell in cells)])
    return text_table(["reward", "d", "arms", "steps", "runs", *names], rows) + (
        "\nmean ± standard deviation of the runs; both-priors is the paper's method, carried ours, "
        "perfect-prior our reference")


def kinds(own):
    """Reward lost by the network and by the posterior, by run."""
    network = own["neural-linear"] - own["perfect-prior"]
    posterior = own["perfect-prior"] - own["no-prior"]
    return network, posterior


def won_back(own, name):
    """The share of what the posterior forgets that a prior wins back, and its standard error."""
    return share(own[name] - own["no-prior"], own["perfect-prior"] - own["no-prior"])


def kinds_text(rewards):
    """Two kinds of forgetting, the paper's prior and ours apart."""
    rows = []
    for d, own in rewards.items():
        scale = 100 / own["neural-linear"].mean()
        lost = [f"{plus_minus(*paired(x))} ({scale * x.mean():+.1f} %)" for x in kinds(own)]
        back = [won_back(own, name) for name in ("both-priors", "carried", "mu-prior")]
        rows.append([name_of(d), *lost, *(f"{100 * x:.0f} ± {100 * e:.0f} %" for x, e in back)])
    medians = [np.median([won_back(own, name)[0] for own in rewards.values()])
               for name in ("both-priors", "carried", "mu-prior")]
    rows.append(["Median", "", "", *(f"{100 * x:.0f} %" for x in medians)])
    header = ["two kinds of forgetting", "by the network", "by the posterior",
              "won back: the paper's", "ours", "μ prior"]
    return text_table(header, rows) + (
        "\nby the network: full memory - perfect prior; by the posterior: perfect prior - no "
        "prior;\nin brackets: of full memory's reward;\nwon back: (prior - no prior) / (perfect "
        "prior - no prior); mean ± standard error, paired by run")


def differences_text(rewards, name):
    """One algorithm minus the others, paired by run."""
    others = [other for other in ALGORITHMS if other != name]
    rows = []
    for d, own in rewards.items():
        cells = [plus_minus(*paired(own[name], own[other])) for other in others]
        rows.append([name_of(d), *cells])
    return text_table([f"{name} minus", *others], rows) + (
        "\npaired difference of the reward ± standard error")


def beats(rewards, better, worse):
    """Data sets on which one beats the other, and those where it is beyond a standard error."""
    found, clear = [], []
    for d, own in rewards.items():
        difference, error = paired(own[better], own[worse])
        if difference > 0:
            found.append(d)
        if difference > error:
            clear.append(d)
    return found, clear


def beats_in_paper(better, worse):
    """The paper's data sets on which one beats the other."""
    return [d for d in paper.TABLE if paper.number(d, better)[0] > paper.number(d, worse)[0]]


def claims(rewards):
    """Each claim of Sec. 4.2: what the paper counts, and what its own method does here.

    A header, a row a claim, and for each claim the verdict on each data set as text.
    """
    rows, details = [], []
    common = [d for d in rewards if d in paper.TABLE]
    for claim, better, worse in CLAIMS:
        theirs = beats_in_paper(better, worse)
        found, clear = beats(rewards, better, worse)
        same = [d for d in common if (d in theirs) == (d in found)]
        rows.append([claim, f"{len(theirs)} of {len(paper.TABLE)}",
                     f"{len(found)} of {len(rewards)}", len(clear),
                     f"{len(same)} of {len(common)}"])
        details.append(claim_detail(rewards, better, worse, theirs))
    return ["the paper's claims", "the paper", "here", "clearly", "same winner"], rows, details


def claims_text(rewards):
    """The claims as text."""
    header, rows, details = claims(rewards)
    each = [f"- {claim}. {detail}" for (claim, *_), detail in zip(CLAIMS, details, strict=True)]
    return text_table(header, rows) + (
        "\nits own method here; clearly: by more than a standard error; same winner: as in the "
        "paper, of the data sets in both\n" + "\n".join(each) +
        "\nWhy limited memory can beat full memory, and on which data sets: exploration.txt (the "
        "noise prior), calibration.txt (how certain the prior is)")


def claim_detail(rewards, better, worse, claimed):
    """'supported: Statlog +12 ± 3; not claimed, but so here: Census +9 ± 2'."""
    found = {}
    for d, own in rewards.items():
        difference, error = paired(own[better], own[worse])
        kind = verdict(difference, error)
        if d not in claimed:
            kind = "not claimed, but so here" if difference > error else None
        found.setdefault(kind, []).append(f"{name_of(d)} {plus_minus(difference, error)}")
    found.pop(None, None)
    return "; ".join(f"{kind}: {', '.join(cells)}" for kind, cells in sorted(found.items(),
                                                                           reverse=True))


def numbers_text(rewards, lines):
    """The paper's method here minus the paper's number, where the number of steps is the same."""
    rows = []
    comparable = {line["dataset"] for line in lines if line["steps"] == 5000}
    for d, own in rewards.items():
        if d not in paper.TABLE or d not in comparable:
            continue
        cells = [plus_minus(*from_paper(own[name], d, name)) for name in paper.ALGORITHMS]
        rows.append([name_of(d), *cells, f"{own['linear'].std(ddof=1):.0f}"])
    if not rows:
        return ""
    header = ["here minus the paper", *paper.ALGORITHMS, "spread of draws"]
    return text_table(header, rows) + (
        "\n± standard error of both together; spread of draws: the standard deviation of our "
        "linear runs, which a single draw of the rows may add")


def from_paper(reward, dataset, algorithm):
    """Ours minus the paper's number, and the standard error of both together."""
    mean, sd = paper.number(dataset, algorithm)
    error = np.sqrt(reward.var(ddof=1) / len(reward) + sd ** 2 / paper.RUNS)
    return reward.mean() - mean, error


def paper_goals(rewards):
    """What the paper's method should do here."""
    n = len(rewards)
    above = set(beats(rewards, "both-priors", "mu-prior")[0])
    above &= set(beats(rewards, "both-priors", "no-prior")[0])
    full = beats(rewards, "both-priors", "neural-linear")[0]
    rows = [goal("above μ prior and no prior (the paper: 8 of 10)", "all", f"{len(above)} of {n}",
                 len(above) == n),
            goal("above full memory (the paper: 4 of 10)", ">= 4", f"{len(full)} of {n}",
                 len(full) >= 4)]
    for d in ("statlog", "epileptic"):
        if d in rewards:
            mean, sd = paper.number(d, "both-priors")
            ours = rewards[d]["both-priors"].mean()
            rows.append(goal(f"{name_of(d)}: the paper's number within its error",
                             f"{mean:.0f} ± {sd:.0f}", f"{ours:.0f}", abs(ours - mean) <= sd))
    return text_table(["goals: the paper's method", "wanted", "measured", ""], rows)


def our_goals(rewards):
    """What the carried prior should do."""
    n = len(rewards)
    best, clear, near, below = 0, 0, 0, []
    for own in rewards.values():
        against = [paired(own["carried"], own[name]) for name in ("mu-prior", "no-prior")]
        best += all(difference >= 0 for difference, _ in against)
        clear += all(difference > error for difference, error in against)
        near += own["carried"].mean() >= 0.98 * own["neural-linear"].mean()
        below.append(1 - own["carried"].mean() / own["perfect-prior"].mean())
    back = {d: won_back(own, "carried")[0] for d, own in rewards.items()}
    median, weakest = np.median(list(back.values())), min(back, key=back.get)
    worst = list(rewards)[int(np.argmax(below))]
    rows = [goal("at least as good as μ prior and no prior", "all", f"{best} of {n}", best == n),
            goal("- by more than a standard error", ">= 8", f"{clear} of {n}", clear >= 8),
            goal("within 2 % of full memory, or better", ">= 7", f"{near} of {n}", near >= 7),
            goal("won back, median", ">= 100 %", f"{100 * median:.0f} %", median >= 0.995),
            goal(f"below the perfect prior, at most ({name_of(worst)})", "<= 4 %",
                 f"{100 * max(below):.1f} %", max(below) <= 0.04)]
    return text_table(["goals: the carried prior", "wanted", "measured", ""], rows) + (
        f"\nweakest: {name_of(weakest)}, {100 * back[weakest]:.0f} % won back")


def not_comparable(rewards, rows):
    """What stands between our numbers and the paper's. rows: how many there are of a data set."""
    text = ["Not comparable with the paper's numbers:", NOT_COMPARABLE]
    heads = [f"{name_of(d)} {n:,} of {paper.COMPLETE[d]:,}" for d, n in rows.items()
             if n < paper.COMPLETE[d]]
    if heads:
        text.append(f"- rows: here are the heads of the complete files: {', '.join(heads)}")
    missing = [name_of(d) for d in paper.TABLE if d not in rewards]
    if missing:
        text.append(f"- not here: {', '.join(missing)}")
    return "\n".join(text)


def seconds_text(lines):
    """Where the time went."""
    total = {part: sum(line["seconds"][part] for line in lines)
             for part in ("total", "train", "priors")}
    train, priors = total["train"] / total["total"], total["priors"] / total["total"]
    return (f"processor time {total['total'] / 60:.1f} minutes, of which training {train:.0%} "
            f"and priors {priors:.0%}")


# Sec. 4.3, the wheel, drift and exploration -------------------------------------------------------

def amazon(rewards, steps, commonest, reviews):
    """Thompson sampling against the best epsilon-greedy."""
    greedy = [name for name in rewards if name.startswith("ε=")]
    sampling = [name for name in rewards if name not in greedy]
    best = max(greedy, key=lambda name: rewards[name].mean())
    rows = []
    for name in (*greedy, *sampling):
        theirs = paper.AMAZON.get(name)
        rows.append([label(name) + (" (the best ε)" if name == best else ""),
                     mean_sd(rewards[name], 1), "{} ± {}".format(*theirs) if theirs else "",
                     plus_minus(*paired(rewards[name], rewards[best]), 1)])
    header = ["Amazon reviews", "reward", "the paper", "minus the best ε"]
    text = text_table(header, rows) + (
        f"\nmean ± standard deviation of {len(rewards[best])} runs of {steps} steps; {reviews} "
        "reviews are here, the complete file has 413,840;\nalways playing the commonest rating "
        f"earns about {commonest * steps:.0f}")
    claims = [("Thompson sampling, both priors, beats the best ε-greedy", best, "both-priors", 0.0),
              ("both priors almost as good as full memory (2 %)", "neural-linear", "both-priors",
               0.02),
              ("ours: the carried prior beats the best ε-greedy", best, "carried", 0.0),
              ("ours: carried almost as good as full memory (2 %)", "neural-linear", "carried",
               0.02)]
    rows = []
    for claim, worse, better, slack in claims:
        if worse in rewards and better in rewards:
            difference, error = paired(rewards[better], rewards[worse])
            found = verdict(difference, error, -slack * rewards[worse].mean())
            rows.append([claim, plus_minus(difference, error, 1), found])
    return text + "\n\n" + text_table(["the paper's claims, and ours", "reward gained", ""], rows)


def wheel(rewards, optimum, steps):
    """The wheel beside the paper's numbers."""
    names = list(dict.fromkeys(name for own in rewards.values() for name in own))
    rows, goals, claims = [], [], []
    for delta, theirs in paper.WHEEL.items():
        own = rewards[f"wheel {delta}"]
        rows.append([f"δ = {delta}", *(mean_sd(own[name], 1) for name in names),
                     f"{optimum[f'wheel {delta}']:.0f}"])
        cells = [theirs.get(name) for name in names]
        rows.append(["  the paper", *("{} ± {}".format(*c) if c else "" for c in cells), ""])
        if "both-priors" in own:
            ours, mean = own["both-priors"].mean(), theirs["both-priors"][0]
            goals.append(goal(f"δ = {delta}: both-priors within 5 % of the paper", f"{mean:.0f}",
                              f"{ours:.0f} ({100 * (ours / mean - 1):+.1f} %)",
                              abs(ours / mean - 1) <= 0.05))
        for name in ("both-priors", "carried", "neural-linear"):
            if name in own and "linear" in own:
                difference, error = paired(own[name], own["linear"])
                claims.append([f"δ = {delta}: {name} beats linear",
                               plus_minus(difference, error, 1), verdict(difference, error)])
    runs = len(next(iter(rewards.values()))[names[0]])
    text = text_table(["wheel", *names, "optimum"], rows) + (
        f"\nmean ± standard deviation of {runs} runs of {steps} steps; always playing the safe arm "
        f"earns {0.2 * steps:.0f}\nb⁰ = 0.06, twice, both: the paper's method with a noise prior "
        "that expects the noise there is, with the buffer counted twice as in its code, with both")
    return "\n\n".join([text, text_table(["the paper's claim", "reward gained", ""], claims),
                        text_table(["goal", "the paper", "measured", ""], goals)])


def drift(rewards):
    """Rewards, and what each prior wins back, where contexts drift."""
    names = [name for name in ALGORITHMS if name in next(iter(rewards.values()))]
    rows = [[name_of(d), *(mean_sd(own[name]) for name in names)] for d, own in rewards.items()]
    runs = len(next(iter(rewards.values()))[names[0]])
    parts = [text_table(["reward", *names], rows) +
             f"\nmean ± standard deviation of {runs} runs; rows in the order of their first "
             "principal component, with jitter"]
    whole = complete(rewards)
    if whole:
        rows = []
        for d, own in whole.items():
            difference, error = paired(own["carried"], own["both-priors"])
            rows.append([name_of(d), plus_minus(difference, error), verdict(difference, error)])
        parts += [kinds_text(whole),
                  text_table(["ours: carried beats the paper's prior", "reward", ""], rows)]
    return "\n\n".join(parts)


def with_noise(name, b0):
    """The name of an algorithm with this noise prior in the results of `exploration`."""
    return f"{name}, b⁰ = {b0:g}"


def exploration(rewards, noise):
    """Whether the paper's prior beats full memory under narrower noise priors, too."""
    names = [name for name in EXPLORED
             if all(with_noise(name, noise[0]) in own for own in rewards.values())]
    compared = [name for name in names if name != "neural-linear" and "neural-linear" in names]
    rows, ahead = [], dict.fromkeys(noise, 0)
    for d, own in rewards.items():
        for b0 in noise:
            at = {name: own[with_noise(name, b0)] for name in names}
            gains = {name: paired(at[name], at["neural-linear"]) for name in compared}
            rows.append([f"{name_of(d)}, b⁰ = {b0:g}", *(mean_sd(at[name]) for name in names),
                         *(plus_minus(*gain) for gain in gains.values())])
            difference, error = gains.get("both-priors", (0.0, 0.0))
            ahead[b0] += difference > error
    header = ["noise prior Inv-Gamma(6, b⁰)", *names, *(f"{name} - full" for name in compared)]
    told = [f"- b⁰ = {b0:g}: the paper's prior beats full memory by more than a standard error on "
            f"{count} of {len(rewards)}" for b0, count in ahead.items()]
    return "\n".join([text_table(header, rows), "mean ± standard deviation of the reward; "
                      "differences paired, ± standard error", *told])
