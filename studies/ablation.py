"""What each choice is worth that the paper leaves open, or that we read differently.

The paper's method and ours, each with one thing changed; as a control of the optimizer, no prior at
all; a linear bandit without a constant feature; another solver of Eq. 6 as printed; and how often
to learn, at settings that are equal otherwise. What the noise is worth is in `exploration`.
"""
from dataclasses import replace
from functools import partial

import nlts
import nlts_beyond
from lab import report as lab
from lab.recipes import RECIPES, at_equal_settings, with_arguments, with_settings
from lab.results import execute, make_runs
from lab.runs import load
from lab.statistics import grouped, judge_rewards
from studies import ablation_agents as agents

SOLVERS = "mushroom", "adult", "statlog"              # where solvers are compared
MOST = {"printed": 5}                                 # runs; a solver takes its time
OFTEN_PLAYED = "neural-linear", "both-priors", "carried"


def choices(method):
    """{what is changed: recipe} for the paper's method or ours."""
    recipe = RECIPES[method]
    prior, paper = recipe.arguments["prior"], method == "both-priors"
    other, mean = (("carried", nlts_beyond.carried_prior) if paper
                   else ("last layer", nlts.mean_prior))

    def with_prior(prior):
        return with_arguments(recipe, prior=prior)

    found = {
        "noise not recomputed": replace(recipe, agent=agents.noise_kept),
        "counted twice in Φ⁰": with_prior(partial(agents.counted_twice, prior=prior)),
        "μ⁰: Eq. 5 on the buffer's rows": with_prior(
            partial(agents.mixed, prior=prior, mean=agents.matched_rows)),
        f"μ⁰: {other}": with_prior(partial(agents.mixed, prior=prior, mean=mean)),
        "the authors' RMSProp": replace(recipe, agent=agents.authors_training),
        "λ = 1": with_settings(recipe, lam=1.0),
        "50 tuples per arm": replace(recipe, memory=50),
        "200 tuples per arm": replace(recipe, memory=200),
    }
    if paper:
        for name, value in (("ridge", 1e-2), ("ridge", 1e-4), ("floor", 1e-1), ("floor", 1e-3)):
            match = partial(nlts.match_covariance, **{name: value})
            found[f"{name} = {value:g}"] = with_prior(
                partial(nlts.likelihood_matching, match=match))
    return found


CHOICES = {
    "both-priors": choices("both-priors"),
    "carried": choices("carried"),
    "no-prior": {"the authors' RMSProp": replace(RECIPES["no-prior"],
                                                 agent=agents.authors_training)},
    "linear": {"no constant feature": replace(RECIPES["linear"], problem=load)},
    "printed": {"Clarabel, not SCS": with_arguments(RECIPES["printed"], solver="CLARABEL")},
}

CHANGES = [(f"{method}, {variant}", method) for method, variants in CHOICES.items()
           for variant in variants]
OFTEN_PAIRS = [
    *((f"{name}, L = {L}", f"{name}, L = 100") for name in OFTEN_PLAYED for L in (50, 200)),
    *((f"carried, L = {L}", f"{other}, L = {L}") for other in OFTEN_PLAYED[:2]
      for L in (50, 100, 200))]


def measure(options):
    """Rewards of each method, and with one thing changed."""
    runs = []
    for d in options.datasets:
        for method, variants in CHOICES.items():
            for variant, recipe in {"": RECIPES[method], **variants}.items():
                if method != "printed" or d in SOLVERS:
                    runs += make_runs(options, d, method, recipe, MOST.get(method),
                                      variant=variant)
        runs += often(options, d)
    return execute(options, runs)


def often(options, d):
    """Runs with other L, at settings that are equal otherwise."""
    return [run for name in OFTEN_PLAYED for L in (50, 100, 200)
            for run in make_runs(options, d, name, with_settings(
                at_equal_settings(RECIPES[name]), L=L, P=2 * L), variant=f"L = {L}")]


def report(results):
    """What each choice changes, and how often to learn."""
    methods = [result for result in results if not result.get("variant")]
    rewards = grouped(lab.named(results), "dataset", "algorithm")
    found = judge_rewards(lab.named(results), [*CHANGES, *OFTEN_PAIRS])
    words = [largest_change(found, rewards, method) for method in ("both-priors", "carried")]
    for other in OFTEN_PLAYED[:2]:
        signs = [one.sign for (pair, _), one in found.items()
                 if pair[0].startswith("carried, L") and pair[1].startswith(f"{other}, L")]
        words.append(f"carried against {other}, with L = 50, 100 and 200: more in {signs.count(1)} "
                     f"of {len(signs)} comparisons, less in {signs.count(-1)}.")
    return lab.page(
        lab.wrapped(f"With {lab.runs_of(results)}:", *words), lab.rewards_table(methods),
        lab.difference_table("reward gained", found,
                             lambda pair: pair[0] if pair in CHANGES else lab.minus(pair)),
        "A row with one name: minus its method. Rows with L: at equal settings except for L and "
        "P = 2L.", lab.played_text(results))


def largest_change(found, rewards, method):
    """How many changes of a method are certain, and the largest."""
    percent = {(pair[0], d): 100 * one.mean / rewards[d][method].mean()
               for (pair, d), one in found.items()
               if pair in CHANGES and pair[1] == method and one.sign}
    if not percent:
        return f"{method}: no change is certain."
    name, d = max(percent, key=lambda cell: abs(percent[cell]))
    return (f"{method}: {len(percent)} changes are certain; the largest is "
            f"{name.removeprefix(f'{method}, ')}, {percent[name, d]:+.0f} % on {lab.title(d)}.")
