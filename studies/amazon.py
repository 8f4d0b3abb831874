"""Sec. 4.3, Figure 3 (a table): Amazon reviews, a text network."""
import numpy as np

import nlts
from lab import paper
from lab import report as lab
from lab.recipes import RECIPES, at_equal_settings
from lab.report import mean_sd, plus_minus, text_table
from lab.results import execute, make_runs
from lab.runs import Recipe
from lab.statistics import difference, grouped, mean_and_error

EPSILONS = 0, 0.01, 0.1                               # the paper prints 0.1
PAPERS = "neural-linear", "both-priors", "printed", "carried"
EQUAL = "equal settings"
SLACK = 0.1                                           # "as good as", of full memory's regret
PRINTED = "ε-greedy, ε = 0.1"
CLAIMS = [  # the better, the worse, slack; the paper's, then ours
    ("neural-linear", PRINTED, 0), ("printed", PRINTED, 0), ("both-priors", PRINTED, 0),
    ("printed", "neural-linear", SLACK), ("both-priors", "neural-linear", SLACK),
    *((name, f"ε-greedy, ε = {epsilon}", 0) for name in ("neural-linear", "printed")
      for epsilon in EPSILONS[:-1]),
    ("carried", "neural-linear", SLACK),
    (f"carried, {EQUAL}", f"neural-linear, {EQUAL}", 0),
    (f"carried, {EQUAL}", f"greedy, {EQUAL}", 0),
]


def measure(options):
    """Rewards at the paper's settings and at equal ones."""
    runs = []
    for epsilon in EPSILONS:
        recipe = Recipe(nlts.EpsilonGreedy, None, {"epsilon": epsilon})
        runs += make_runs(options, "amazon", "ε-greedy", recipe, variant=f"ε = {epsilon}")
    for name in PAPERS:
        runs += make_runs(options, "amazon", name, RECIPES[name])
    for name in ("neural-linear", "carried", "greedy"):
        runs += make_runs(options, "amazon", name, at_equal_settings(RECIPES[name]), variant=EQUAL)
    return execute(options, runs)


# Report -------------------------------------------------------------------------------------------

def named(results):
    """Results with a name: the algorithm, and its variant."""
    return [result | {"name": ", ".join(filter(None, (result["algorithm"],
                                                      result.get("variant"))))}
            for result in results]


def papers_number(name):
    """The paper's (mean, standard deviation), or None."""
    known = paper.AMAZON | {"printed": paper.AMAZON["both-priors"],
                            PRINTED: paper.AMAZON["ε-greedy"]}
    return known.get(name)


def missing(x, name):
    """The paper's mean minus ours, ± standard error of both."""
    theirs, sd = papers_number(name)
    mean, error = mean_and_error(x)
    return theirs - mean, np.hypot(error, sd / paper.RUNS ** 0.5)


def report(results):
    """Rewards beside the paper's, and what is still missing of them."""
    rewards = grouped(named(results), "name")
    rows = []
    for name, x in rewards.items():
        theirs = papers_number(name)
        rows.append([name, mean_sd(x), paper.cell(theirs),
                     plus_minus(*missing(x, name)) if theirs else ""])
    always = np.mean([result["best_arm"] for result in results])
    header = ["Amazon reviews", "reward", "in the paper", "missing"]
    parts = [answer(rewards), text_table(header, rows) + (
        f"\nmean ± standard deviation of {lab.runs_of(results)} of {results[0]['steps']} steps; "
        f"always playing the commonest rating earns {always:.0f};\nmissing: the paper's mean "
        f"minus ours ± standard error of both; {EQUAL}: of `equal`, else the paper's"),
        claims_text(rewards, results[0]["optimal"]), explored_text(results),
        lab.solver_text(results), lab.hours_text(results), lab.machines_text(results)]
    return "\n\n".join(filter(None, parts))


def answer(rewards):
    """What is missing of the paper's rewards, with the network and the tokens that it links."""
    sentences = []
    for name in (PRINTED, "neural-linear", "printed", "both-priors"):
        if name in rewards and len(rewards[name]) > 1:
            gap, error = missing(rewards[name], name)
            word = "within two standard errors of the paper's" if abs(gap) < 2 * error else (
                f"{abs(gap):.0f} ± {error:.0f} {'below' if gap > 0 else 'above'} the paper's")
            sentences.append(f"{name} is {word}.")
    return lab.wrapped("With the network and the tokens that the paper links,",
                       *(sentences or ["one run says little of what is missing."]))


def claims_text(rewards, optimal):
    """The paper's claims and ours."""
    gains, slacks = {}, {}
    for better, worse, slack in CLAIMS:
        if better in rewards and worse in rewards:
            text = f"{better} > {worse}"
            if slack:
                text = f"{better} as good as {worse} (within {slack:.0%} of its regret)"
            gains[text] = difference(rewards[better], rewards[worse])
            slacks[text] = slack * (optimal - rewards[worse].mean())
    return lab.claims_table("claim", "reward gained", gains, slacks) if gains else ""


def explored_text(results):
    """The share of plays of another arm than the one thought best."""
    shares = grouped(named(results), "name", value="explored")
    return lab.wrapped("exploration, %:", "; ".join(f"{name} {100 * x.mean():.1f}"
                                                    for name, x in shares.items()))
