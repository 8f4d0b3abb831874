"""Sec. 4.3, Figure 3 (a table): Amazon reviews, a text network."""
import numpy as np

import nlts
from lab import paper
from lab import report as lab
from lab.recipes import RECIPES, at_equal_settings
from lab.results import execute, make_runs
from lab.runs import Recipe
from lab.statistics import grouped, mean_and_error

EPSILONS = 0, 0.01, 0.1                               # the paper prints 0.1
PAPERS = "neural-linear", "both-priors", "printed", "carried"
EQUAL = "equal settings"
SLACK = 0.1                                           # "as good as", of full memory's regret
GREEDY = "ε-greedy, ε = 0.1"
NUMBERS = {GREEDY: paper.AMAZON["ε-greedy"], "neural-linear": paper.AMAZON["neural-linear"],
           "printed": paper.AMAZON["both-priors"], "both-priors": paper.AMAZON["both-priors"]}
CLAIMS = {  # the paper's: [(the better, the worse, when, slack)]
    "neural-linear earns more than ε-greedy": [("neural-linear", GREEDY, "", 0)],
    "both priors earns more than ε-greedy": [(name, GREEDY, "", 0) for name in paper.METHOD],
    "both priors is as good as neural-linear, within 10 % of its regret": [
        (name, "neural-linear", "", SLACK) for name in paper.METHOD],
}
OTHERS = [
    *((name, f"ε-greedy, ε = {epsilon}", "", 0) for name in ("neural-linear", "printed")
      for epsilon in EPSILONS[:-1]),
    ("carried", "neural-linear", "", SLACK),
    *((f"carried, {EQUAL}", f"{name}, {EQUAL}", "", 0) for name in ("neural-linear", "greedy")),
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


def missing(x, name):
    """The paper's mean minus ours, ± standard error of both."""
    theirs, sd = NUMBERS[name]
    mean, error = mean_and_error(x)
    return theirs - mean, np.hypot(error, sd / paper.RUNS ** 0.5)


def report(results):
    """Rewards beside the paper's, what is still missing of them, and claims."""
    rewards = grouped(lab.named(results), "algorithm")
    rows = [[name, lab.mean_sd(x), paper.cell(NUMBERS.get(name)),
             lab.with_error(*missing(x, name)) if name in NUMBERS else ""]
            for name, x in rewards.items()]
    always = np.mean([result["best_arm"] for result in results])
    return lab.page(
        answer(rewards, lab.runs_of(results)),
        lab.text_table(["Amazon reviews", "reward", "in the paper", "missing"], rows) + (
            f"\nmean ± standard deviation of {lab.runs_of(results)} of {results[0]['steps']} "
            f"steps; always playing the commonest rating earns {always:.0f};\nmissing: the paper's "
            f"mean minus ours ± standard error of both; {EQUAL}: of `equal`, else the paper's"),
        lab.claims_table(sum(CLAIMS.values(), []) + OTHERS, regrets(results)),
        lab.played_text(results))


def regrets(results):
    """Regret in all, by algorithm and run."""
    return {"": {name: results[0]["optimal"] - x
                 for name, x in grouped(lab.named(results), "algorithm").items()}}


def claims(results):
    """What is certain of the paper's claims."""
    return lab.claims_of(CLAIMS, OTHERS, regrets(results), "Sec. 4.3, Figure 3", "yes")


def answer(rewards, runs):
    """What is missing of the paper's rewards, with the network and the tokens that it links."""
    sentences = []
    for name in NUMBERS:
        if name in rewards:
            gap, error = missing(rewards[name], name)
            side = "below" if gap > 0 else "above"
            word = f"{lab.with_error(abs(gap), error)} {side}"
            if abs(gap) < 2 * error < np.inf:
                word = "within two standard errors of"
            sentences.append(f"{name} is {word} the paper's.")
    return lab.wrapped(f"With the network and the tokens that the paper links ({runs}),",
                       *sentences)
