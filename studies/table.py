"""Sec. 4.2, Table 1: rewards on real data, at the paper's settings."""
import numpy as np

from lab import paper
from lab import report as lab
from lab.own import algorithms
from lab.report import markdown_table, mean_sd, minus, text_table, title
from lab.results import execute, make_runs
from lab.statistics import differences, grouped, judged, z_score

MOST = {"printed": 20}                                # runs; a solver of Eq. 6 takes its time
PAPERS = "printed", "both-priors"                     # its method, as two readings of Eq. 6
NEAR = 0.03                                           # of the paper's mean
METHOD = "both priors"                                # in a claim: each of PAPERS
CLAIMS = [  # the better, the worse, section of the paper, data sets that it is said of
    (METHOD, "no-prior", "4.2", tuple(paper.TABLE)),
    (METHOD, "mu-prior", "4", tuple(paper.TABLE)),
    ("mu-prior", "no-prior", "4", tuple(paper.TABLE)),
    (METHOD, "neural-linear", "4.2", tuple(paper.TABLE)),
    (METHOD, "linear", "4.2", paper.NONLINEAR),
    ("neural-linear", "linear", "4.2", paper.NONLINEAR),
    ("linear", "neural-linear", "4.2", tuple(d for d in paper.TABLE if d not in paper.NONLINEAR)),
]
SIGNS = {1: "+", 0: "0", -1: "−"}


def measure(options):
    """Rewards on the paper's data sets, or on a table of one's own."""
    sets = [str(options.csv)] if options.csv else options.datasets
    return execute(options, [
        run for d in sets for name, recipe in algorithms(options).items()
        for run in make_runs(options, d, name, recipe, MOST.get(name))])


# The paper's numbers and claims -------------------------------------------------------------------

def pairs(results):
    """Who is compared with whom, once each: the paper's claims, our prior, and your own."""
    found = [(name, worse) for better, worse, *_ in CLAIMS
             for name in (PAPERS if better == METHOD else (better,))]
    found.remove(("linear", "neural-linear"))         # the other one's negative
    own = [(name, other) for name in lab.own_names(results)
           for other in ("both-priors", "neural-linear")]
    return [*found, ("printed", "both-priors"), *own]


def judge(results):
    """{(pair, data set): Judged}, of all of them one family."""
    return judged(differences(grouped(results, "dataset", "algorithm"), pairs(results)))


def sign(found, better, worse, d):
    """1, 0 or -1: what is certain of a claim here; None where it was not played."""
    if ((better, worse), d) in found:
        return found[(better, worse), d].sign
    if ((worse, better), d) in found:
        return -found[(worse, better), d].sign
    return None


def papers_sign(better, worse, d):
    """The sign of the difference of the paper's means."""
    better = "both-priors" if better == METHOD else better
    return int(np.sign(paper.number(d, better)[0] - paper.number(d, worse)[0]))


def distance(rewards, d, name):
    """How far our mean is from the paper's: as a share of it, and in standard errors of both."""
    theirs, sd = paper.number(d, name)
    return np.mean(rewards) / theirs - 1, z_score(rewards, theirs, sd, paper.RUNS)


def agreement(results):
    """{algorithm: {data set: (share, z)}} for cells of the paper."""
    found = {}
    for d, by_name in grouped(results, "dataset", "algorithm").items():
        for name, rewards in by_name.items():
            if paper.number(d, name):
                found.setdefault(name, {})[d] = distance(rewards, d, name)
    return found


# Report -------------------------------------------------------------------------------------------

def report(results):
    """Rewards beside the paper's numbers, and its claims."""
    found, near = judge(results), agreement(results)
    parts = [answer(near), lab.rewards_table(results, printed=True)]
    if near:
        parts += [agreement_table(near), claims_table(found)]
    if found:
        sets = {d: title(d) for d in grouped(results, "dataset")}
        rows = {pair: minus(pair) for pair, _ in found}
        parts.append(lab.difference_table("reward gained", found, rows, sets) + "\n"
                     + lab.FAMILY.format(len(found)))
    parts += [lab.explored_table(results), lab.solver_text(results), lab.hours_text(results),
              lab.machines_text(results)]
    return "\n\n".join(filter(None, parts))


KINDS = {"|z| < 2": lambda share, z: abs(z) < 2,
         f"within {100 * NEAR:.0f} %": lambda share, z: abs(share) <= NEAR}


def answer(near):
    """How many of the paper's numbers of its method are found again."""
    sentences = []
    for name in PAPERS:
        if name in near:
            comparable = [cell for d, cell in near[name].items() if d not in paper.NOT_COMPARABLE]
            counts = [f"{kind} on {sum(ok(*cell) for cell in comparable)} of {len(comparable)} "
                      f"comparable data sets ({sum(ok(*cell) for cell in near[name].values())} of "
                      f"all {len(near[name])})" for kind, ok in KINDS.items()]
            sentences.append(f"{lab.label(name)}: {', '.join(counts)}.")
    return lab.wrapped("The paper's numbers of its method.", *sentences) if sentences else ""


def agreement_table(near):
    """Our means minus the paper's: in percent, and in standard errors of both."""
    sets = list(next(iter(near.values())))
    rows = []
    for d in sets:
        found = [near[name].get(d) for name in near]
        cells = [f"{100 * cell[0]:+.1f} ({cell[1]:+.1f})" if cell else "" for cell in found]
        rows.append([title(d) + (" °" if d in paper.NOT_COMPARABLE else ""), *cells])
    for what, left_out in (("comparable", paper.NOT_COMPARABLE), ("all", ())):
        for kind, ok in KINDS.items():
            columns = [[cell for d, cell in near[name].items() if d not in left_out]
                       for name in near]
            rows.append([f"{kind}, {what}", *(f"{sum(ok(*cell) for cell in cells)} of {len(cells)}"
                                              for cells in columns)])
    notes = [f"{title(d)}: {why}" for d, why in paper.NOT_COMPARABLE.items() if d in sets]
    return text_table(["% above the paper (z)", *near], rows) + (
        "\nz: the difference over the standard error of both (the paper's: sd / √50)"
        + ("\n" + lab.wrapped("° not comparable.", "; ".join(notes)) if notes else ""))


def claim_rows(found):
    """Claims that were played, with the algorithm: those about the paper's method once per reading
    of Eq. 6."""
    return [(better, worse, where, said, name) for better, worse, where, said in CLAIMS
            for name in (PAPERS if better == METHOD else (better,))
            if any(sign(found, name, worse, d) is not None for d in said)]


def claims_table(found):
    """The paper's claims: the signs of its differences, and what is certain here."""
    sets = [d for d in paper.TABLE if any(key[1] == d for key in found)]
    rows, last = [], None
    for better, worse, where, said, name in claim_rows(found):
        if (better, worse) != last:
            rows.append([f"{better} > {worse} (Sec. {where})", *[""] * len(sets)])
            rows.append(["  in the paper", *(SIGNS[papers_sign(better, worse, d)]
                                             if d in said else "" for d in sets)])
        last = better, worse
        signs = [sign(found, name, worse, d) if d in said else None for d in sets]
        rows.append([f"  {name}", *("" if s is None else SIGNS[s] for s in signs)])
    return text_table(["the paper's claims", *(title(d)[:5] for d in sets)], rows) + (
        "\n+ more, − less, 0 unclear; in the paper: by its means alone")


# Files --------------------------------------------------------------------------------------------

def files(results):
    """For README.md: the grid of the paper's claims, and a small table."""
    rewards = grouped(results, "dataset", "algorithm")
    if not set(rewards) <= set(paper.TABLE):
        return {}
    return {"claims.md": claims_grid(judge(results), list(rewards)),
            "table.md": small_table(results, rewards)}


def claims_grid(found, sets):
    """Rows are claims, columns data sets."""
    rows, held, against, total = [], 0, 0, 0
    for better, worse, where, said, name in claim_rows(found):
        cells = []
        for d in sets:
            s = sign(found, name, worse, d) if d in said else None
            if s is None:
                cells.append("")
                continue
            theirs = papers_sign(better, worse, d) > 0
            cells.append(f"**{SIGNS[s]}**" if theirs else SIGNS[s])
            total += theirs
            held += theirs and s > 0
            against += theirs and s < 0
        rows.append([f"{lab.label(name)} > {lab.label(worse)}", f"Sec. {where}", *cells])
    header = ["claim", "paper", *map(title, sets)]
    return markdown_table(header, rows) + (
        "\n\n+ earns more here, − less, 0 unclear (paired by run, at 5 % after Holm's correction "
        f"for {len(found)} differences); bold: the paper's means have the claim there; empty: the "
        f"paper does not make it there. Of {total} bold cells, {held} hold here, and in {against} "
        "the opposite does.\n")


SMALL = [  # header, algorithm, whether the number is the paper's
    ("paper's method, in the paper", "both-priors", True),
    ("as printed", "printed", False), ("smallest solution", "both-priors", False),
    ("full memory, in the paper", "neural-linear", True), ("full memory", "neural-linear", False),
    ("no prior, in the paper", "no-prior", True), ("no prior", "no-prior", False),
]


def small_table(results, rewards):
    """The paper's method, full memory and no prior, in the paper and here."""
    rows = [[title(d), *(paper.cell(paper.number(d, name)) if theirs
                         else mean_sd(by_name[name]) if name in by_name else ""
                         for _, name, theirs in SMALL)] for d, by_name in rewards.items()]
    return markdown_table(["reward", *(header for header, *_ in SMALL)], rows) + (
        f"\n\nMean ± standard deviation; here {lab.runs_of(results)}, in the paper {paper.RUNS}.\n")
