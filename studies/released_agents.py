"""The released program's agent: nlts.NeuralLinearTS with what that program does, and print not.

1. The first weights are within 0.3, whatever the number of inputs.
2. RMSProp, step size 0.1 / (1 + steps / 2), never restarted; gradients up to 5.
3. lam = 1 with limited memory.
4. R^2 is kept through a phase: forgotten rewards are booked as noise.
5. Phi_old is the whole posterior: the buffer counts twice, again in each phase.
6. s^2 is computed with the new features.
7. After a phase an arm samples from what it was, until it is played (if it ever is).
8. Without matching, Phi0 is what had been learned by the first phase.
9. The output layer has a bias, which overwrites the last entry of mu0.
10. An arm without tuples in the buffer has the prior covariance 1e-5 I.
11. The matched covariance is bounded from below by 1e-5 I alone.
12. Scania's labels are in the order of the file, its contexts are shuffled.
With `constant`, a feature of 1 stands beside phi: its weight in mu0 is then the output bias.
"""
import copy
from functools import partial

import numpy as np
import torch
from torch import nn

import datasets
import nlts
from lab import runs
from lab.agents import LEAST, PrintedPrior


class Biased(nlts.MLP):
    """nlts.MLP with a bias per output, at first 0 [9], and first weights within 0.3 [1]."""

    def __init__(self, dim, n_arms, seed=0):
        super().__init__(dim, n_arms, seed=seed)
        self.output_bias = nn.Parameter(torch.zeros(n_arms, dtype=torch.float64))
        self.input.data *= 0.3 * dim ** 0.5

    def forward(self, x):
        """D(b): (n, d) -> (n, N)."""
        return super().forward(x) + self.output_bias


class RMSProp:
    """The program's training, through all phases of an agent: its step size is never restarted [2].

    As in TensorFlow, the mean squares of gradients start at 1.
    """

    def __init__(self, decay=0.5, clip=5.0):
        self.decay = decay
        self.clip = clip
        self.steps = 0
        self.squares = None

    def __call__(self, network, buffer, config, rng):
        """As nlts.train."""
        contexts, played, rewards = buffer.arrays()
        for rows in rng.integers(len(played), size=(config.P, config.batch)):
            self.step(network, contexts[rows], played[rows], rewards[rows])

    def step(self, network, X, played, r):
        """One step on a batch of contexts, arms and rewards."""
        parameters = [p.detach().numpy() for p in network.parameters()]
        gradients = loss_gradients(parameters, X, played, r)
        if self.squares is None:
            self.squares = [np.ones_like(p) for p in parameters]
        norm = np.sqrt(sum((g ** 2).sum() for g in gradients))
        lr = 0.1 / (1 + self.decay * self.steps)
        for p, g, square in zip(parameters, gradients, self.squares, strict=True):
            g *= self.clip / max(norm, self.clip)
            square *= 0.9
            square += 0.1 * g ** 2
            p -= lr * g / np.sqrt(square + 1e-10)
        self.steps += 1


def loss_gradients(parameters, X, played, r):
    """The gradients of Eq. 3 on a batch by the parameters of an nlts.MLP or a Biased."""
    W, bias, V, *output_bias = parameters
    phi = np.maximum(X @ W.T + bias, 0)                                      # (batch, g)
    D = (phi * V[played]).sum(1)
    if output_bias:
        D += output_bias[0][played]
    by_D = np.zeros((len(r), len(V)))
    by_D[np.arange(len(r)), played] = 2 / len(r) * (D - r)
    by_phi = by_D @ V * (phi > 0)
    gradients = [by_phi.T @ X, by_phi.sum(0), by_D.T @ phi]
    return gradients + [by_D.sum(0) for _ in output_bias]


def smallest_above_tiny(E_new, s2):
    """Eq. 6 with next to no bound of ours, + 1e-5 I [11]."""
    return nlts.match_covariance(E_new, s2, ridge=1e-4, floor=1e-6) + LEAST * np.eye(E_new.shape[1])


class Released(nlts.NeuralLinearTS):
    """The released program's agent. `shown` is what an arm samples from, `arms` what it knows."""

    def __init__(self, network, n_arms, memory, prior=nlts.no_prior, solver="", constant=False,
                 train=None, seed=0, **settings):
        nlts.LinearTS.__init__(self, network.weights.shape[1] + constant, n_arms, seed=seed,
                               **{"lam": 1.0 if memory else 0.25, **settings})           # [3]
        self.constant = constant
        self.network = network
        self.buffer = nlts.ReplayBuffer(memory)
        self.train = RMSProp()                                                           # [2]
        self.matched = prior is nlts.likelihood_matching
        self.prior = partial(prior, match=smallest_above_tiny) if self.matched else prior
        if solver:                                    # Eq. 6 as printed
            self.prior = PrintedPrior(solver=solver, max_iters=2500)
            self.solver_counts = self.prior.counts
        self.shown = list(self.arms)
        self.R2 = np.zeros(n_arms)                    # of all tuples, forgotten or not
        self.first_learned = None                     # precisions at the first phase

    def features(self, contexts):
        """The features (n, g) of contexts (n, d)."""
        E = nlts.last_layer_activations(self.network, contexts)
        return np.pad(E, ((0, 0), (0, 1)), constant_values=1) if self.constant else E

    def phi(self, context):
        """The features (g,) of a context (d,)."""
        return self.features(context[None])[0]

    def last_layer(self):
        """The last layer's weights (N, g), as the program reads them [9]."""
        weights = nlts.last_layer_weights(self.network)
        if self.constant:
            weights = np.pad(weights, ((0, 0), (0, 1)))
        weights[:, -1] = self.network.output_bias.detach().numpy()
        return weights

    def scores(self, context):
        """The sampled reward of each arm, (N,)."""
        phi = self.phi(context)
        nu2 = self.noise(self.shown, self.config, self.rng)
        mu_tilde = [arm.sample(nu2_i, self.rng) for arm, nu2_i in zip(self.shown, nu2, strict=True)]
        return mu_tilde @ phi

    def update(self, context, arm, reward):
        """Observe the reward that the arm paid in this context; every L steps, learn."""
        before = copy.copy(self.shown[arm])
        self.buffer.add(context, arm, reward)
        self.arms[arm].update(self.phi(context), reward)
        self.shown[arm] = self.arms[arm]
        self.R2[arm] += reward ** 2
        self.t += 1
        if self.t % self.config.L == 0:
            self.shown[arm] = before                  # without the tuple that triggers the phase
            self.learn(arm)

    def learn(self, played):
        """A learning phase, triggered by a play of the arm `played`."""
        contexts, arms, rewards = self.buffer.arrays()
        old = self.shown                              # the whole posterior [5]
        if self.first_learned is None:
            self.first_learned = [arm.precision for arm in old]
        self.train(self.network, self.buffer, self.config, self.rng)
        phi = self.features(contexts)
        E_new = [phi[arms == i] for i in range(self.n_arms)]
        forgotten_n = [arm.n - len(E) for arm, E in zip(self.arms, E_new, strict=True)]
        for i, (Phi0, mu0) in enumerate(self.priors(old, E_new)):
            r = rewards[arms == i]
            a = self.config.a0 + forgotten_n[i] / 2
            b = self.config.b0 + max(self.R2[i] - r @ r, 0) / 2                          # [4]
            self.arms[i] = nlts.BayesianLinearRegression(Phi0, mu0, a, b, forgotten_n[i])
            self.arms[i].update(E_new[i], r)
        self.shown = [self.stale(old[i], new, i == played) for i, new in enumerate(self.arms)]

    def priors(self, old, E_new):
        """(Phi0, mu0) of each arm."""
        priors = self.prior(old, E_new, E_new, self.last_layer(), self.config.lam)       # [6]
        if self.matched:
            nothing = np.eye(len(priors[0][1])) / LEAST
            return [prior if len(E) else (nothing, prior[1])                             # [10]
                    for prior, E in zip(priors, E_new, strict=True)]
        if self.buffer.capacity is None:
            return priors
        return [(Phi0, mu0) for Phi0, (_, mu0)                                           # [8]
                in zip(self.first_learned, priors, strict=True)]

    def stale(self, old, new, played):
        """What an arm samples from after a phase until it is played [7]: the old mean and noise
        with the old covariance or, if that was matched, the prior's. Of the arm that triggered the
        phase mean and noise are new, but computed with this covariance; in full memory, with the
        new one."""
        if played and self.buffer.capacity is None:
            return new
        precision = new.Phi0 if self.matched else old.precision
        mu = old.mu_hat
        b = old.b
        if played:
            mu = np.linalg.solve(precision, new.Phi0 @ new.mu0 + new.f)
            b = new.b + (new.mu_hat @ new.precision @ new.mu_hat - mu @ new.precision @ mu) / 2
        # b < 0 can be, and NumPy samples from a negative covariance as if it were positive
        return nlts.BayesianLinearRegression(precision, mu, new.a, max(abs(b), 1e-12), new.n)


def mislabelled(task):
    """Scania's first rows: classes as in the file, contexts in another order [12]."""
    source = datasets.SOURCES[task.dataset]
    found = datasets.table(source)
    rng = np.random.default_rng(runs.run_seed(task))
    X = datasets.one_hot(found.X[rng.permutation(task.steps)], found.levels)
    return datasets.classify(task.dataset, X, found.y[:task.steps], source.arms, rng)


def mislabelled_with_intercept(task):
    """The same for LinearTS."""
    return runs.append_one(mislabelled(task))
