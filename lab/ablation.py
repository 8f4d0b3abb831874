"""What each choice is worth that the paper leaves open, or that we read differently.

Two methods, the paper's and ours, each with one thing changed. A variant is a recipe with another
argument: a prior, a training function, a network, a hyperparameter.
"""
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from scipy.stats import t as student

import beyond
import nlts
from lab import verdicts
from lab.agents import MEMORY
from lab.agents import RECIPES as ALL
from lab.plots import STYLE, pyplot
from lab.runs import execute, make_task, present, steps_of
from lab.text import Report, mean_sd, paired, rough, text_table

SETS = "statlog", "mushroom", "epileptic", "census"
METHODS = {"both-priors": "the paper's method", "carried": "ours"}
REFERENCES = "no-prior", "perfect-prior", "neural-linear"


# Other priors -------------------------------------------------------------------------------------

def counted_twice(left, E_old, E_new, weights, lam, prior):
    """The prior of everything, the buffer's rows included, which are then put back once more."""
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


def carried_only(left, E_old, E_new, weights, lam):
    """Our prior without the last layer in its mean."""
    priors = beyond.carried_prior(left, E_old, E_new, weights, lam)
    return [(Phi0, np.linalg.solve(Phi0, old.precision @ old.mu_hat))
            for (Phi0, _), old in zip(priors, left, strict=True)]


# Another agent, training, networks ----------------------------------------------------------------

class NoiseKept(nlts.NeuralLinearTS):
    """b goes through a learning phase as it is."""

    def learn(self):
        """A learning phase; the residuals of old features stay in b."""
        noise = [arm.b for arm in self.arms]
        super().learn()
        for arm, b in zip(self.arms, noise, strict=True):
            arm.b = b


class AuthorsTraining:
    """The optimizer of the authors' code: RMSProp with a step size of 0.1 / (1 + steps / 2).

    It goes on through all phases, gradients have a norm of at most 5, and, as in TensorFlow, mean
    squares start at 1.
    """

    def __init__(self):
        self.steps, self.squares = 0, None

    def __call__(self, network, buffer, config, rng):
        """As nlts.train."""
        parameters = list(network.parameters())
        if self.squares is None:
            self.squares = [torch.ones_like(p) for p in parameters]
        contexts, arms, rewards = map(torch.as_tensor, buffer.arrays())
        each = torch.arange(config.batch)
        for _ in range(config.P):
            rows = torch.as_tensor(rng.integers(len(arms), size=config.batch))
            played = network(contexts[rows])[each, arms[rows]]
            loss = ((played - rewards[rows]) ** 2).mean()
            gradients = torch.autograd.grad(loss, parameters)
            self.step(parameters, gradients)

    def step(self, parameters, gradients):
        """One step of RMSProp."""
        norm = torch.sqrt(sum((g ** 2).sum() for g in gradients))
        size = 0.1 / (1 + self.steps / 2)
        self.steps += 1
        with torch.no_grad():
            for p, g, square in zip(parameters, gradients, self.squares, strict=True):
                g = g * min(1.0, 5 / float(norm))
                square.mul_(0.9).add_(0.1 * g ** 2)
                p -= size * g / torch.sqrt(square + 1e-10)


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
        phi = super().features(x)
        return torch.cat([phi, torch.ones(len(x), 1, dtype=phi.dtype)], 1)


# The variants -------------------------------------------------------------------------------------

def changed(function, **arguments):
    """The fields of a recipe with this function as its prior."""
    return {"arguments": {"prior": partial(function, **arguments)}}


def choices(prior):
    """{a choice as it is: {another answer: fields of the recipe}} for the method of a prior."""
    means = {"Eq. 5 on the buffer's rows": changed(mixed, prior=prior, mean=matched_rows)}
    if prior is nlts.likelihood_matching:
        means["ours"] = changed(mixed, prior=prior, mean=beyond.carried_prior)
    else:
        means["the last layer"] = changed(mixed, prior=prior, mean=nlts.mean_prior)
        means["carried only, ρ = 0"] = changed(carried_only)
    found = {
        "noise: taken out, put back": {"kept as it is": {"agent": NoiseKept}},
        "buffer: counted once": {"counted twice in Φ⁰": changed(counted_twice, prior=prior)},
        "μ⁰: the last layer (ours: with carried mean)": means,
        "Inv-Gamma(6, 6)": {"Inv-Gamma(6, 0.6)": {"hyper": {"b0": 0.6}}},
        "λ = 0.25": {f"λ = {lam:g}": {"hyper": {"lam": lam}} for lam in (0.05, 1.0)},
        "Adam; first weights by fan-in": {
            "the authors' RMSProp": {"agent": authors_agent},
            "first weights within 0.3": {"network": WideMLP},
            "both": {"agent": authors_agent, "network": WideMLP}},
        "output bias: none": {"a constant feature": {"network": ConstantFeature,
                                                     "train": nlts.train}},
        "buffer: 100 an arm": {f"{memory} an arm": {} for memory in (50, 200)},
        "L = 400, P = 2L": {f"L = {L}": {"hyper": {"L": L, "P": 2 * L}} for L in (100, 800)},
    }
    if prior is nlts.likelihood_matching:
        found["Eq. 6: ridge 1e-3, floor 1e-2"] = {
            f"ridge {ridge:g}, floor {floor:g}":
                changed(nlts.likelihood_matching,
                        match=partial(nlts.match_covariance, ridge=ridge, floor=floor))
            for ridge, floor in ((1e-2, 1e-2), (1e-4, 1e-2), (1e-3, 1e-1), (1e-3, 1e-3))}
    return found


CHOICES = {method: choices(ALL[method].arguments["prior"]) for method in METHODS}
RECIPES = {name: ALL[name] for name in (*METHODS, *REFERENCES)}
for _method, _groups in CHOICES.items():
    for _variants in _groups.values():
        for _label, _fields in _variants.items():
            RECIPES[f"{_method}, {_label}"] = replace(ALL[_method], label=_label, **_fields)


def memory_of(name):
    """Buffered tuples an arm."""
    label = name.rpartition(", ")[2]
    return int(label.split()[0]) if label.endswith(" an arm") else MEMORY


def ablation(o):
    """The paper's method and ours, each with one choice changed."""
    sets = present(o, o.datasets or (SETS[:1] if o.quick else SETS))
    runs = o.runs or (2 if o.quick else 5)
    names = list(RECIPES)
    if o.quick:
        names = [name for name in names if name in ALL or name.endswith(("kept as it is", "in Φ⁰"))]
    tasks = []
    for d in sets:
        steps = steps_of(o, d, quick=1000)
        tasks += [make_task(o, "ablation", d, name, steps, module="lab.ablation",
                            memory=memory_of(name)) for name in names]
    lines = execute(o, "ablation", tasks, runs)
    rewards = verdicts.by_dataset(lines)
    text = [references_text(rewards)]
    text += [changes_text(rewards, method) for method in METHODS]
    text.append(remarks(rewards, runs, max(line["steps"] for line in lines)))
    data = {"reward": {d: {name: list(x) for name, x in own.items()} for d, own in rewards.items()}}
    return Report("\n\n".join(text) + rough(o), data, {"ablation": ablation_figure(rewards, runs)})


# What is told -------------------------------------------------------------------------------------

def references_text(rewards):
    """Rewards of what nothing was changed in."""
    rows = [[ALL[name].label, *(mean_sd(own[name]) for own in rewards.values())]
            for name in (*METHODS, *REFERENCES)]
    return text_table(["reward", *map(verdicts.name_of, rewards)], rows)


def changes_text(rewards, method):
    """The paired difference from the method as it is, a row a variant."""
    rows = []
    for group, variants in CHOICES[method].items():
        names = {label: f"{method}, {label}" for label in variants}
        names = {label: name for label, name in names.items()
                 if all(name in own for own in rewards.values())}
        if names:
            rows.append([group, *[""] * len(rewards)])
        rows += [["- " + label, *(difference(own[name], own[method]) for own in rewards.values())]
                 for label, name in names.items()]
    return text_table([f"{METHODS[method]}: change of the reward",
                       *map(verdicts.name_of, rewards)], rows)


def difference(x, y):
    """'+12 ± 3 *': the paired difference, its standard error, and a star beyond two of them."""
    value, error = paired(x, y)
    return f"{value:+.0f} ± {error:.0f} {'*' if abs(value) > 2 * error else ' '}"


def remarks(rewards, runs, steps):
    """How to read the stars."""
    cells = sum(len(own) - len(METHODS) - len(REFERENCES) for own in rewards.values())
    chance = cells * 2 * student.sf(2, runs - 1)
    return (f"Paired difference from the method as it is, ± standard error of {runs} runs of "
            f"{steps} steps; other seeds than the table's.\n* beyond two standard errors: of "
            f"these {cells} differences chance alone would mark about {chance:.0f}.")


# What is drawn ------------------------------------------------------------------------------------

def figure_rows(rewards):
    """(text, label or None for a heading) from top to bottom."""
    played = set().union(*rewards.values())
    rows = []
    for group in dict.fromkeys(group for groups in CHOICES.values() for group in groups):
        labels = {label: None for groups in CHOICES.values() for label in groups.get(group, {})}
        labels = [label for label in labels if any(f"{m}, {label}" in played for m in METHODS)]
        if labels:
            rows += [(group, None), *(("    " + label, label) for label in labels)]
    return rows


def ablation_figure(rewards, runs, low=-0.5, high=2.25):
    """A row a variant, a panel a data set: where it stands between no prior and the perfect one."""
    rows = figure_rows(rewards)
    size = max(3.8 + 1.8 * len(rewards), 8.5), 1.5 + 0.19 * len(rows)
    figure, axes = pyplot.subplots(1, len(rewards), figsize=size, sharey=True, squeeze=False)
    for panel, (d, own) in zip(axes[0], rewards.items(), strict=True):
        for y, (_, label) in enumerate(rows):
            if label is None:
                panel.axhspan(y - 0.5, y + 0.5, color="0.93", linewidth=0, zorder=0)
        for method, shift in zip(METHODS, (-0.17, 0.17), strict=True):
            draw_method(panel, own, method, shift, rows, low, high)
        panel.set_xlim(low - 0.12, high + 0.12)
        panel.set_xticks([0, 1], ["no\nprior", "perfect\nprior"], fontsize=8)
        panel.set_title(verdicts.name_of(d), fontsize=9)
        panel.set_ylim(len(rows) - 0.5, -0.5)
        panel.tick_params(axis="y", length=0)
    axes[0, 0].set_yticks(range(len(rows)), [text for text, _ in rows], fontsize=8, ha="left")
    axes[0, 0].tick_params(axis="y", pad=205)
    figure.suptitle(f"One choice changed: mean reward of {runs} runs, ± 1 standard error of the "
                    "difference from the method as it is\n(orange, dashed: the paper's; blue, "
                    "dash-dotted: ours). Filled: more than two of them away. Arrows: outside.",
                    fontsize=9)
    return figure


def draw_method(panel, own, method, shift, rows, low, high):
    """The variants of one method in one panel; 0 is no prior, 1 the perfect prior."""
    none, style = own["no-prior"], STYLE[method]
    unit = (own["perfect-prior"] - none).mean()
    for x, line in ((0, ":"), (1, "-")):
        panel.axvline(x, color="0.6", linewidth=0.8, linestyle=line, zorder=0)
    panel.axvline((own[method] - none).mean() / unit, color=style["color"], linewidth=1,
                  linestyle=style["linestyle"], zorder=1)
    for y, (_, label) in enumerate(rows):
        reward = own.get(f"{method}, {label}")
        if reward is None:
            continue
        x = (reward - none).mean() / unit
        value, error = paired(reward, own[method])
        marker = "<" if x < low else ">" if x > high else style["marker"]
        bar = error / abs(unit) if low <= x <= high and np.isfinite(error) else None
        panel.errorbar(np.clip(x, low, high), y + shift, xerr=bar, marker=marker, markersize=4,
                       color=style["color"], linewidth=1, zorder=2,
                       markerfacecolor=style["color"] if abs(value) > 2 * error else "white")
