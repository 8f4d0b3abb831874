"""What each choice is worth that the paper leaves open, or that we read differently.

Two methods, the paper's and ours, each with one thing changed.
"""
from dataclasses import replace
from functools import partial

import torch
from scipy.stats import t as student

import beyond
import nlts
from lab import verdicts
from lab.agents import MEMORY
from lab.agents import RECIPES as ALL
from lab.runs import execute, make_task, present, steps_of
from lab.text import Report, mean_sd, paired, plus_minus, rough, text_table

SETS = "statlog", "mushroom", "adult", "epileptic", "census"
METHODS = {"both-priors": "the paper's method", "carried": "ours"}
TUPLES = {"50 an arm": 50, "200 an arm": 200}         # buffered; in all others as ever


# Other priors -------------------------------------------------------------------------------------

def counted_twice(left, E_old, E_new, weights, lam, prior):
    """Phi_old of everything, the buffer's rows included, which are then put back once more. The
    mean stays that of what left: a prior does not see the buffer's rewards."""
    everything = []
    for old, E in zip(left, E_old, strict=True):
        Phi = old.precision + E.T @ E
        everything.append(nlts.BayesianLinearRegression(Phi, old.mu_hat, old.a, old.b,
                                                        old.n + len(E)))
    return prior(everything, E_old, E_new, weights, lam)


def mixed(left, E_old, E_new, weights, lam, prior, mean):
    """Phi0 of one prior, mu0 of another."""
    priors = [one(left, E_old, E_new, weights, lam) for one in (prior, mean)]
    return [(Phi0, mu0) for (Phi0, _), (_, mu0) in zip(*priors, strict=True)]


def matched_rows(left, E_old, E_new, weights, lam):
    """mu0 of Eq. 5 on the buffer's rows."""
    return [(old.precision, nlts.match_mean(E, E_moved, old.mu_hat))
            for old, E, E_moved in zip(left, E_old, E_new, strict=True)]


# Another agent, training, networks ----------------------------------------------------------------

class NoiseKept(nlts.NeuralLinearTS):
    """b goes through a learning phase as it is: residuals of old features stay in it."""

    def learn(self):
        noise = [arm.b for arm in self.arms]
        super().learn()
        for arm, b in zip(self.arms, noise, strict=True):
            arm.b = b


class AuthorsTraining:
    """The authors' RMSProp, through all phases, with a step size of 0.1 / (1 + steps / 2).

    Gradients have a norm of at most 5 and, as in TensorFlow, mean squares start at 1.
    """

    def __init__(self):
        self.steps, self.squares = 0, None

    def __call__(self, network, buffer, config, rng):
        """As nlts.train."""
        parameters = list(network.parameters())
        if self.squares is None:
            self.squares = [torch.ones_like(p) for p in parameters]
        contexts, arms, rewards = map(torch.as_tensor, buffer.arrays())
        for _ in range(config.P):
            rows = torch.as_tensor(rng.integers(len(arms), size=config.batch))
            played = network(contexts[rows])[torch.arange(config.batch), arms[rows]]
            loss = ((played - rewards[rows]) ** 2).mean()
            gradients = torch.autograd.grad(loss, parameters)
            norm = sum(float((g ** 2).sum()) for g in gradients) ** 0.5
            for p, g, square in zip(parameters, gradients, self.squares, strict=True):
                g = g * 5 / max(norm, 5)
                square.mul_(0.9).add_(0.1 * g ** 2)
                p.data -= 0.1 / (1 + self.steps / 2) * g / torch.sqrt(square + 1e-10)
            self.steps += 1


def authors_agent(*arguments, train, **options):
    """An agent with an optimizer of its own."""
    return nlts.NeuralLinearTS(*arguments, train=AuthorsTraining(), **options)


class WideMLP(nlts.MLP):
    """First weights of the authors' code: all within 0.3, whatever the number of inputs."""

    def __init__(self, dim, n_arms, seed=0):
        super().__init__(dim, n_arms, seed=seed)
        self.input.data *= 0.3 * dim ** 0.5


class ConstantFeature(nlts.MLP):
    """An output bias, at first 0: one more feature, always 1."""

    def __init__(self, dim, n_arms, seed=0):
        super().__init__(dim, n_arms, seed=seed)
        self.weights = torch.nn.Parameter(torch.nn.functional.pad(self.weights.detach(), (0, 1)))

    def features(self, x):
        """phi = (phi, 1)."""
        return torch.nn.functional.pad(super().features(x), (0, 1), value=1.0)


# The variants -------------------------------------------------------------------------------------

def changed(function, **arguments):
    """The fields of a recipe with this function as its prior."""
    return {"arguments": {"prior": partial(function, **arguments)}}


def choices(prior):
    """{what is changed: fields of the recipe} for the method of a prior."""
    paper = prior is nlts.likelihood_matching
    other, mean = ("carried", beyond.carried_prior) if paper else ("last layer", nlts.mean_prior)
    found = {
        "noise kept as it is": {"agent": NoiseKept},
        "counted twice in Φ⁰": changed(counted_twice, prior=prior),
        "μ⁰: Eq. 5 on the buffer's rows": changed(mixed, prior=prior, mean=matched_rows),
        f"μ⁰: {other}": changed(mixed, prior=prior, mean=mean),
        "b⁰ = 0.6": {"hyper": {"b0": 0.6}},
        "λ = 0.05": {"hyper": {"lam": 0.05}},
        "λ = 1": {"hyper": {"lam": 1.0}},
        "the authors' RMSProp": {"agent": authors_agent},
        "first weights within 0.3": {"network": WideMLP},
        "output bias": {"network": ConstantFeature, "train": nlts.train},
        **dict.fromkeys(TUPLES, {}),
        "L = 100": {"hyper": {"L": 100, "P": 200}},
        "L = 800": {"hyper": {"L": 800, "P": 1600}},
    }
    if paper:
        for name, value in (("ridge", 1e-2), ("ridge", 1e-4), ("floor", 1e-1), ("floor", 1e-3)):
            match = partial(nlts.match_covariance, **{name: value})
            found[f"{name} = {value:g}"] = changed(nlts.likelihood_matching, match=match)
    return found


CHOICES = {method: choices(ALL[method].arguments["prior"]) for method in METHODS}
RECIPES = {method: ALL[method] for method in METHODS}
RECIPES |= {f"{method}, {label}": replace(ALL[method], label=label, **fields)
            for method, found in CHOICES.items() for label, fields in found.items()}


def ablation(o):
    """The paper's method and ours, each with one choice changed."""
    sets = present(o, o.datasets or (SETS[:1] if o.quick else SETS))
    runs = o.runs or (2 if o.quick else 5)
    names = list(RECIPES)
    if o.quick:
        names = [name for name in names if name in ALL or name.endswith(("kept as it is", "in Φ⁰"))]
    tasks = [make_task(o, "ablation", d, name, steps_of(o, d, quick=1000), module="lab.ablation",
                       memory=TUPLES.get(name.rpartition(", ")[2], MEMORY))
             for d in sets for name in names]
    rewards = verdicts.by_dataset(execute(o, "ablation", tasks, runs))
    text = [changes_text(rewards, method) for method in METHODS]
    return Report("\n\n".join([*text, remarks(rewards, runs)]) + rough(o))


def changes_text(rewards, method):
    """The paired difference from the method as it is, a row a variant."""
    rows = [["as it is: reward", *(mean_sd(own[method]) for own in rewards.values())]]
    for label in CHOICES[method]:
        name = f"{method}, {label}"
        if all(name in own for own in rewards.values()):
            rows.append([label, *(difference(own[name], own[method]) for own in rewards.values())])
    return text_table([METHODS[method], *map(verdicts.name_of, rewards)], rows)


def difference(x, y):
    """'+12 ± 3 *': the paired difference, its standard error, and a star beyond two of them."""
    value, error = paired(x, y)
    return plus_minus(value, error) + (" *" if abs(value) > 2 * error else "  ")


def remarks(rewards, runs):
    """How to read the stars."""
    cells = sum(len(own) - len(METHODS) for own in rewards.values())
    chance = cells * 2 * student.sf(2, runs - 1)
    return (f"Paired difference from the method as it is, ± standard error of {runs} runs.\n"
            f"* beyond two standard errors: of {cells} differences chance alone would mark about "
            f"{chance:.0f}.\nAs it is: noise taken out and put back, Inv-Gamma(6, 6), λ = 0.25, "
            "Adam, first weights by fan-in,\n100 tuples an arm, L = 400, P = 2L; Eq. 6 with ridge "
            "0.001 and floor 0.01.")
