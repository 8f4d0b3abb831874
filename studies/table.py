"""Sec. 4.2, Table 1: rewards on real data, at the paper's settings."""
from lab import paper
from lab import report as lab
from lab.own import algorithms
from lab.paper import METHOD
from lab.results import execute, make_runs
from lab.statistics import grouped, judge_rewards

MOST = {"printed": 20}                                # runs; a solver of Eq. 6 takes its time
SIGNS = {1: "+", 0: "0", -1: "−"}                     # in the grid of claims
CLAIMS = [  # the better, the worse, section of the paper, data sets that it is said of
    (METHOD, "no-prior", "4.2", tuple(paper.TABLE)),
    (METHOD, "mu-prior", "4", tuple(paper.TABLE)),
    (["mu-prior"], "no-prior", "4", tuple(paper.TABLE)),
    (METHOD, "neural-linear", "4.2", tuple(paper.TABLE)),
    (METHOD, "linear", "4.2", paper.NONLINEAR),
    (["neural-linear"], "linear", "4.2", paper.NONLINEAR),
    (["linear"], "neural-linear", "4.2", tuple(d for d in paper.TABLE if d not in paper.NONLINEAR)),
]


def measure(options):
    """Rewards on the paper's data sets, or on a table of one's own."""
    return execute(options, [
        run for d in options.datasets for name, recipe in algorithms(options).items()
        for run in make_runs(options, d, name, recipe, MOST.get(name))])


# The paper's numbers and claims -------------------------------------------------------------------

def judge(results):
    """{(pair, data set): Judged} of the paper's claims and your own algorithms, one family."""
    pairs = [(name, worse) for better, worse, *_ in CLAIMS[:-1] for name in better]
    # the last claim is its neighbor's negative
    return judge_rewards(results, [*pairs, METHOD, *lab.own_pairs(results)])


def sign(found, better, worse, d):
    """1, 0 or -1: what is certain of a claim here; None where it was not played."""
    if ((better, worse), d) in found:
        return found[(better, worse), d].sign
    if ((worse, better), d) in found:
        return -found[(worse, better), d].sign
    return None


def held(better, worse, said):
    """The data sets, of those that a claim is said of, where the paper's means have it."""
    return [d for d in said if paper.number(d, better[0])[0] > paper.number(d, worse)[0]]


# Report -------------------------------------------------------------------------------------------

def report(results):
    """Rewards beside the paper's numbers, and its claims."""
    found = judge(results)
    near = {name: lab.near_paper({(d, name): x for d, x in by_set.items()})
            for name, by_set in grouped(results, "algorithm", "dataset").items()}
    in_paper = set(grouped(results, "dataset")) & set(paper.TABLE)
    return lab.page(
        answer(found, near, lab.runs_of(results)) if in_paper else "",
        rewards_table(results, near if in_paper else {}),
        lab.difference_table("reward gained", found), lab.played_text(results))


def answer(found, near, runs):
    """How many of the paper's claims hold, and how many means of its method are met."""
    again = [f"The paper's mean is met within 3 % by {name} on "
             f"{near[name]['comparable', 'within 3 %']} comparable data sets "
             f"({near[name]['all', 'within 3 %']} in all)." for name in METHOD if name in near]
    return lab.wrapped(claims_text(found, runs), *again)


def claims_text(found, runs):
    """How many of the paper's claims hold, counted per data set where its own means have them."""
    signs = []
    for better, worse, _, said in CLAIMS:
        for d in held(better, worse, said):
            own = {sign(found, name, worse, d) for name in better} - {None}
            signs += [own] if own else []
    if not signs:
        return ""
    text = (f"Of the paper's claims, counted per data set where its own means have them, "
            f"{signs.count({1})} of {len(signs)} certainly hold here ({runs}), however Eq. 6 is "
            f"solved; of {sum(-1 in own for own in signs)} the opposite does; the rest are unclear "
            "with one solution or both.")
    if any(pair == METHOD for pair, _ in found):
        text += f" {METHOD[0]} earns against {METHOD[1]}: {lab.counted(found, METHOD)}."
    return text


def rewards_table(results, near):
    """Rewards beside the paper's, how far they are from these, and how many are near."""
    names = list(grouped(results, "algorithm"))
    rows = []
    for d, by_name in grouped(results, "dataset", "algorithm").items():
        far = {}
        for name, x in by_name.items():
            if number := paper.number(d, name):
                share, z = lab.distance(x, number)
                far[name] = f"{100 * share:+.1f} ({z:+.1f})"
        rows.append([lab.title(d) + (" °" if d in paper.NOT_COMPARABLE else ""),
                     *(lab.mean_sd(by_name[name]) if name in by_name else "" for name in names)])
        if far:
            rows.append(["  in the paper", *(paper.cell(paper.number(d, name)) for name in names)])
            rows.append(["  % above it (z)", *(far.get(name, "") for name in names)])
    notes = f"mean ± standard deviation of {lab.runs_of(results)}"
    if near:
        rows += [[f"{kind}, {where}", *(near[name][where, kind] for name in names)]
                 for where in ("comparable", "all") for kind in lab.NEAR]
        why = "; ".join(f"{lab.title(d)}: {why}" for d, why in paper.NOT_COMPARABLE.items())
        notes += ("; z: the difference over the standard error of both\n"
                  + lab.wrapped(f"° not comparable. {why}."))
    return lab.text_table(["reward", *names], rows) + "\n" + notes


def called(better):
    """How a claim calls its better algorithm."""
    return "both priors" if better is METHOD else better[0]


# Files --------------------------------------------------------------------------------------------

def claims(results):
    """What is certain of the paper's claims, on the data sets where its means have them."""
    found = judge(results)
    runs = max((one.runs for one in found.values()), default=0)
    for better, worse, where, said in CLAIMS:
        sets = held(better, worse, said)
        signs = {name: [one for d in sets if (one := sign(found, name, worse, d)) is not None]
                 for name in better}
        yield (f"{called(better)} earns more than {worse}", f"Sec. {where}, Table 1",
               f"{len(sets)} of {len(said)} data sets", signs, runs)


def files(results):
    """For README.md: the grid of the paper's claims, and a small table."""
    rewards = grouped(results, "dataset", "algorithm")
    if not set(rewards) <= set(paper.TABLE):
        return {}
    return {"claims.md": grid_page(judge(results), list(rewards), lab.runs_of(results)),
            "table.md": small_table(results, rewards)}


def grid_cell(found, claim, d):
    """The sign of a claim on a data set, of both readings of Eq. 6 where they differ; in
    parentheses where the paper's means do not have the claim."""
    better, worse, _, said = claim
    signs = [sign(found, name, worse, d) for name in better if d in said]
    text = " / ".join(dict.fromkeys(SIGNS[one] for one in signs if one is not None))
    return f"({text})" if text and d not in held(better, worse, said) else text


def grid_page(found, sets, runs):
    """The grid of the paper's claims, for README.md: a row per data set, so that it is narrow."""
    header = ["data set", *(f"{called(better)} > {worse}" for better, worse, *_ in CLAIMS)]
    rows = [[lab.title(d), *(grid_cell(found, claim, d) for claim in CLAIMS)] for d in sets]
    return lab.markdown_table(header, rows) + (
        "\n\nHere + earns more, − less, 0 unclear (paired by run, at 5 % after Holm's correction "
        f"for {len(found)} differences); where `printed` and `both-priors` differ, both signs "
        "stand, in this order. In parentheses: the paper's means do not have it; empty: "
        f"the paper does not make it there. {claims_text(found, runs)}\n")


SMALL = [  # header, algorithm, whether the number is the paper's
    ("paper's method, in the paper", "both-priors", True),
    ("as printed", "printed", False), ("smallest solution", "both-priors", False),
    ("full memory, in the paper", "neural-linear", True), ("full memory", "neural-linear", False),
    ("no prior, in the paper", "no-prior", True), ("no prior", "no-prior", False),
]


def small_table(results, rewards):
    """The paper's method, full memory and no prior, in the paper and here."""
    rows = [[lab.title(d), *(paper.cell(paper.number(d, name)) if theirs
                             else lab.mean_sd(by_name[name]) if name in by_name else ""
                             for _, name, theirs in SMALL)] for d, by_name in rewards.items()]
    return lab.markdown_table(["reward", *(header for header, *_ in SMALL)], rows) + (
        f"\n\nMean ± standard deviation; here {lab.runs_of(results)}, in the paper {paper.RUNS}.\n")
