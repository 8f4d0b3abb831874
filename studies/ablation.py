"""What each choice is worth that the paper leaves open, or that we read differently.

The paper's method and ours, each with one thing changed; as a control of the optimizer, no prior at
all; a linear bandit without a constant feature; another solver of Eq. 6 as printed; and how often
to learn, at settings that are equal otherwise.
"""
from dataclasses import replace
from functools import partial

import nlts
import nlts_beyond
from lab.recipes import RECIPES, at_equal_settings, with_arguments, with_settings
from lab.results import execute, make_runs
from lab.runs import load
from studies import ablation_agents as agents
from studies.peers_agents import wide_network

SOLVERS = "mushroom", "adult", "statlog"              # where solvers are compared
OFTEN = "mushroom", "adult", "statlog", "epileptic"   # where L is changed
OFTEN_TIMES = 4                                       # as many runs as of the other choices
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
        "noise pooled over arms": with_arguments(recipe, noise=nlts_beyond.pooled_noise),
        "counted twice in Φ⁰": with_prior(partial(agents.counted_twice, prior=prior)),
        "μ⁰: Eq. 5 on the buffer's rows": with_prior(
            partial(agents.mixed, prior=prior, mean=agents.matched_rows)),
        f"μ⁰: {other}": with_prior(partial(agents.mixed, prior=prior, mean=mean)),
        "the authors' RMSProp": replace(recipe, agent=agents.authors_training),
        "first weights within 0.3": replace(recipe, network=wide_network),
        "first hidden biases within 1/√d": replace(recipe, network=agents.UniformBiases),
        "output bias": replace(recipe, network=agents.ConstantFeature),
        "b⁰ = 0.6": with_settings(recipe, b0=0.6),
        "λ = 0.05": with_settings(recipe, lam=0.05),
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
}


def measure(options):
    """Rewards of each method, and with one thing changed."""
    runs = []
    for d in options.datasets:
        for method, variants in CHOICES.items():
            for variant, recipe in {"": RECIPES[method], **variants}.items():
                runs += make_runs(options, d, method, recipe, variant=variant)
        if d in SOLVERS:
            clarabel = with_arguments(RECIPES["printed"], solver="CLARABEL")
            for variant, recipe in {"": RECIPES["printed"], "Clarabel, not SCS": clarabel}.items():
                runs += make_runs(options, d, "printed", recipe, variant=variant)
        if d in OFTEN:
            runs += often(replace(options, runs=OFTEN_TIMES * options.runs), d)
    return execute(options, runs)


def often(options, d):
    """Runs with other L, at settings that are equal otherwise."""
    return [run for name in OFTEN_PLAYED for L in (50, 100, 200)
            for run in make_runs(options, d, name, with_settings(
                at_equal_settings(RECIPES[name]), L=L, P=2 * L), variant=f"L = {L}")]
