"""What each choice is worth that the paper leaves open, or that we read differently.

The paper's method and ours, each with one thing changed; as a control of the optimizer, no prior at
all; a linear bandit without a constant feature; another solver of Eq. 6 as printed; and how often
to learn, at settings that are equal otherwise.
"""
from dataclasses import replace
from functools import partial

import nlts
import nlts_beyond
from lab import report as lab
from lab.recipes import RECIPES, at_equal_settings, with_arguments, with_settings
from lab.report import mean_sd, title
from lab.results import execute, make_runs
from lab.runs import load
from lab.statistics import difference, grouped, judged
from studies import ablation_agents as agents
from studies.peers_agents import wide_network

SOLVERS = "mushroom", "adult", "statlog"              # where solvers are compared
OFTEN = "mushroom", "adult", "statlog", "epileptic"   # where L is changed
OFTEN_TIMES = 4                                       # as many runs as of the other choices
OFTEN_L = "L = 50", "L = 100", "L = 200"
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
    "printed": {"Clarabel, not SCS": with_arguments(RECIPES["printed"], solver="CLARABEL")},
}


def measure(options):
    """Rewards of each method, and with one thing changed."""
    runs = []
    for d in options.datasets:
        for method, variants in CHOICES.items():
            for variant, recipe in {"": RECIPES[method], **variants}.items():
                if method != "printed" or d in SOLVERS:
                    runs += make_runs(options, d, method, recipe, variant=variant)
        if d in OFTEN:
            runs += often(replace(options, runs=OFTEN_TIMES * options.runs), d)
    return execute(options, runs)


def often(options, d):
    """Runs with other L, at settings that are equal otherwise."""
    return [run for name in OFTEN_PLAYED for L in (50, 100, 200)
            for run in make_runs(options, d, name, with_settings(
                at_equal_settings(RECIPES[name]), L=L, P=2 * L), variant=f"L = {L}")]


def report(results):
    """What each choice changes, and how often to learn."""
    rewards = grouped(results, "algorithm", "variant", "dataset")
    found = judged(gains(rewards))
    sets = {d: title(d) for d in grouped(results, "dataset")}
    above = [[f"{method}: reward", *(mean_sd(x[""][d]) if d in x[""] else "" for d in sets)]
             for method, x in rewards.items() if "" in x]
    rows = {row: f"  {': '.join(row)}" for row, _ in found}
    return "\n\n".join([
        lab.wrapped(*answers(rewards, found)),
        lab.difference_table("minus its method's reward, or L = 100's", found, rows, sets,
                             above=above)
        + "\nRows with L are at equal settings, except for L and P = 2L.\n" + lab.power_text(found),
        lab.played_text(results)])


def gains(rewards):
    """{((method, what is changed), data set): by run}: each choice against its method, other L
    against L = 100, and carried against others at each L."""
    found = {}
    for method, by_variant in rewards.items():
        for variant, by_set in by_variant.items():
            if variant not in ("", "L = 100"):
                base = by_variant["L = 100" if variant in OFTEN_L else ""]
                found |= {((method, variant), d): difference(x, base[d])
                          for d, x in by_set.items()}
    return found | {((f"carried − {other}", L), d): difference(x, rewards[other][L][d])
                    for other in OFTEN_PLAYED[:2] for L in OFTEN_L
                    for d, x in rewards["carried"].get(L, {}).items()}


def answers(rewards, found):
    """The largest certain change of each method; how carried fares at each L."""
    words = []
    for method in ("both-priors", "carried"):
        percent = {(variant, d): 100 * one.mean / rewards[method][""][d].mean()
                   for ((of, variant), d), one in found.items()
                   if of == method and variant not in OFTEN_L and one.sign}
        if percent:
            variant, d = max(percent, key=lambda cell: abs(percent[cell]))
            words.append(f"{method}: of all changes, {len(percent)} are certain; the largest is "
                         f"{variant}, {percent[variant, d]:+.0f} % on {title(d)}.")
        else:
            words.append(f"{method}: no change is certain.")
    for other in OFTEN_PLAYED[:2]:
        signs = [one.sign for ((what, _), _), one in found.items() if what == f"carried − {other}"]
        words.append(f"carried against {other}, L = 50, 100 and 200: more in {signs.count(1)} of "
                     f"{len(signs)} comparisons, less in {signs.count(-1)}.")
    return words
