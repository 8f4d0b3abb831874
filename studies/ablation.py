"""What each choice is worth that the paper leaves open, or that we read differently.

Two methods, the paper's and ours, each with one thing changed.
"""

import torch

import nlts

# Other priors -------------------------------------------------------------------------------------

def counted_twice(forgotten, E_old, E_new, weights, lam, prior):
    """Phi_old of everything, the buffer's rows included, which are then put back once more. The
    mean stays that of what forgotten: a prior does not see the buffer's rewards."""
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
