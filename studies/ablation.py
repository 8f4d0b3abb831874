"""What each choice is worth that the paper leaves open, or that we read differently.

The paper's method and ours, each with one thing changed; as a control of the optimizer, no prior at
all; and a linear bandit without a constant feature.
"""
from dataclasses import replace
from functools import partial

import torch

import nlts
import nlts_beyond
from lab import fast
from lab.recipes import RECIPES
from lab.report import markdown_table, mean_sd, name_of, plus_minus, runs_of, text_table
from lab.runs import execute, make_task
from lab.statistics import LEVEL, grouped, holm, p_value, paired
from studies.released import RMSProp, first_network

SETS = "statlog", "mushroom", "adult", "epileptic", "census"
METHODS = {"both-priors": "the paper's method", "carried": "ours", "no-prior": "no prior",
           "linear": "linear"}
WIDE = partial(first_network, switches=("wide",))     # the authors' first weights: within 0.3


# Other priors -------------------------------------------------------------------------------------

def counted_twice(forgotten, E_old, E_new, weights, lam, prior):
    """Phi_old of everything, the buffer's rows included, which are then put back once more. The
    mean stays that of what was forgotten: a prior does not see the buffer's rewards."""
    everything = []
    for old, E in zip(forgotten, E_old, strict=True):
        Phi = old.precision + E.T @ E
        everything.append(nlts.BayesianLinearRegression(Phi, old.mu_hat, old.a, old.b,
                                                        old.n + len(E)))
    return prior(everything, E_old, E_new, weights, lam)


def mixed(forgotten, E_old, E_new, weights, lam, prior, mean):
    """Phi0 of one prior, mu0 of another."""
    priors = [one(forgotten, E_old, E_new, weights, lam) for one in (prior, mean)]
    return [(Phi0, mu0) for (Phi0, _), (_, mu0) in zip(*priors, strict=True)]


def matched_rows(forgotten, E_old, E_new, weights, lam):
    """mu0 of Eq. 5 on the buffer's rows."""
    return [(old.precision, nlts.match_mean(E, E_moved, old.mu_hat))
            for old, E, E_moved in zip(forgotten, E_old, E_new, strict=True)]


# Another agent, training, networks ----------------------------------------------------------------

class NoiseKept:
    """The paper's noise, but b goes through a learning phase as it is: residuals of old features
    stay in it. Only the tuple that ends a phase is lost to it."""

    def __init__(self):
        self.seen = self.b = None

    def __call__(self, arms, config, rng):
        """As nlts.inverse_gamma_noise; a phase gives an arm another Phi0."""
        if self.seen is None:
            self.seen, self.b = list(arms), [arm.b for arm in arms]
        for i, (before, arm) in enumerate(zip(self.seen, arms, strict=True)):
            if arm.Phi0 is before.Phi0:
                self.b[i] += arm.b - before.b
        self.seen = list(arms)
        return [b / rng.gamma(arm.a) for b, arm in zip(self.b, arms, strict=True)]


def noise_kept_agent(*arguments, **options):
    """An agent with a noise of its own."""
    return nlts.NeuralLinearTS(*arguments, noise=NoiseKept(), **options)


def authors_agent(*arguments, train, **options):
    """An agent with an optimizer of its own."""
    return nlts.NeuralLinearTS(*arguments, train=RMSProp(), **options)


class UniformBiases(nlts.MLP):
    """First hidden biases uniform within 1/sqrt(d), as the first weights are."""

    def __init__(self, dim, n_arms, seed=0):
        super().__init__(dim, n_arms, seed=seed)
        generator = torch.Generator().manual_seed(seed + 1)
        self.bias.data.uniform_(-dim ** -0.5, dim ** -0.5, generator=generator)


class ConstantFeature(nlts.MLP):
    """An output bias, at first 0: one more feature, always 1."""

    def __init__(self, dim, n_arms, seed=0):
        super().__init__(dim, n_arms, seed=seed)
        self.weights = torch.nn.Parameter(torch.nn.functional.pad(self.weights.detach(), (0, 1)))

    def features(self, x):
        """phi = (phi, 1)."""
        return torch.nn.functional.pad(super().features(x), (0, 1), value=1.0)


# The variants -------------------------------------------------------------------------------------

def changed(recipe, prior):
    """The recipe with another prior."""
    return replace(recipe, arguments=recipe.arguments | {"prior": prior})


def choices(method):
    """{what is changed: arguments of its task} for the paper's method or ours."""
    recipe = RECIPES[method]
    prior, paper = recipe.arguments["prior"], method == "both-priors"
    carried = nlts_beyond.carried_prior
    other, mean = ("carried", carried) if paper else ("last layer", nlts.mean_prior)
    pooled = recipe.arguments | {"noise": nlts_beyond.pooled_noise}
    recipes = {
        "noise not recomputed": replace(recipe, agent=noise_kept_agent),
        "noise pooled over arms": replace(recipe, arguments=pooled),
        "counted twice in Φ⁰": changed(recipe, partial(counted_twice, prior=prior)),
        "μ⁰: Eq. 5 on the buffer's rows": changed(
            recipe, partial(mixed, prior=prior, mean=matched_rows)),
        f"μ⁰: {other}": changed(recipe, partial(mixed, prior=prior, mean=mean)),
        "the authors' RMSProp": replace(recipe, agent=authors_agent),
        "first weights within 0.3": replace(recipe, network=WIDE),
        "first hidden biases within 1/√d": replace(recipe, network=UniformBiases),
        "output bias": replace(recipe, network=ConstantFeature, train=nlts.train),
    }
    if paper:
        for name, value in (("ridge", 1e-2), ("ridge", 1e-4), ("floor", 1e-1), ("floor", 1e-3)):
            match = partial(fast.match_covariance, **{name: value})
            recipes[f"{name} = {value:g}"] = changed(
                recipe, partial(nlts.likelihood_matching, match=match))
    found = {label: {"recipe": variant} for label, variant in recipes.items()}
    found |= {f"{name} = {value:g}": {"hyper": {key: value}} for name, key, value in
              (("b⁰", "b0", 0.6), ("λ", "lam", 0.05), ("λ", "lam", 1.0))}
    found |= {f"{memory} tuples per arm": {"memory": memory} for memory in (50, 200)}
    for L, pulls in ((50, 3), (50, 5), (100, 2), (100, 3), (100, 5), (800, 2)):
        found[f"L = {L}, {pulls} initial pulls"] = {
            "hyper": {"L": L, "P": 2 * L, "initial_pulls": pulls}}
    return found


CHOICES = {"both-priors": choices("both-priors"), "carried": choices("carried"),
           "no-prior": {"the authors' RMSProp": {"recipe": replace(RECIPES["no-prior"],
                                                                   agent=authors_agent)}},
           "linear": {"no constant feature": {"recipe": replace(RECIPES["linear"],
                                                                intercept=False)}}}
SHOWN = ["50 tuples per arm", "200 tuples per arm", "L = 100, 3 initial pulls",
         "L = 50, 5 initial pulls"]                   # in README.md
QUICK = "noise not recomputed", "noise pooled over arms"


def measure(o):
    """Rewards of each method, and with one thing changed."""
    tasks = []
    for d in o.datasets:
        for method in o.algorithms:
            tasks.append(make_task(o, d, method))
            tasks += [make_task(o, d, method, variant=label, **arguments)
                      for label, arguments in CHOICES[method].items()
                      if not o.quick or label in QUICK]
    return execute(o, tasks)


def tell(lines):
    """The paired difference from the method, a row per variant."""
    rewards, cells = grouped(lines, "algorithm", "variant", "dataset"), {}
    for method, variants in rewards.items():
        for label in [label for label in variants if label]:
            for d, own in variants[label].items():
                cells[method, label, d] = own - variants[""][d]
    p = holm([p_value(*paired(x), len(x)) for x in cells.values()])
    starred = {key for key, value in zip(cells, p, strict=True) if value <= LEVEL}
    sets, parts = list(grouped(lines, "dataset")), []
    for method, variants in rewards.items():
        rows = [["baseline: reward", *(mean_sd(variants[""][d]) for d in sets)]]
        for label in [label for label in variants if label]:
            rows.append([label, *(plus_minus(*paired(cells[method, label, d]))
                                  + (" *" if (method, label, d) in starred else "  ")
                                  for d in sets)])
        parts.append(text_table([METHODS[method], *map(name_of, sets)], rows))
    return "\n\n".join([*parts, (
        f"Paired difference from the baseline, ± standard error of {runs_of(lines)}. * at 5 % "
        f"(t-test, Holm's correction for all\n{len(cells)} differences). The baseline: noise taken "
        "out and put back, Inv-Gamma(6, 6), λ = 0.25, Adam, first weights by\nfan-in, hidden "
        "biases 0, 100 tuples per arm, L = 400, P = 2L, 2 initial pulls; Eq. 6 with ridge 0.001 "
        "and floor 0.01.")])


def pages(lines):
    """choices.md, in README.md: what memory and L are worth to our prior; the constant feature."""
    rewards = grouped(lines, "algorithm", "variant", "dataset")
    if not all(label in rewards.get("carried", {}) for label in SHOWN):
        return {}
    sets = list(rewards["carried"][""])
    rows = [["100 tuples per arm, L = 400, 2 initial pulls",
             *(mean_sd(rewards["carried"][""][d]) for d in sets)]]
    for label in SHOWN:
        own = rewards["carried"][label]
        rows.append([label, *(plus_minus(*paired(own[d], rewards["carried"][""][d]))
                              for d in sets)])
    header = [f"{runs_of(lines)}, P = 2L", *map(name_of, sets)]
    note = ("First row: reward ± standard deviation; below it: what changes, paired by run, ± "
            "standard error (the command `ablation`).")
    return {"choices.md": markdown_table(header, rows) + f"\n\n{note}"}
