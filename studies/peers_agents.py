"""Other bandits with a neural network, written from their descriptions and public programs.

LiM2: O. Nabati, T. Zahavy and S. Mannor, "Online Limited Memory Neural-Linear Bandits with
Likelihood Matching", 2021. NeuralTS: W. Zhang, D. Zhou, L. Li and Q. Gu, "Neural Thompson
Sampling", 2021.
"""
import numpy as np

import nlts
from studies.released_agents import RMSProp


class LiM2(nlts.NeuralLinearTS):
    """Likelihood matching at every step: one step of training on a batch, and one of projected
    gradient descent on the covariance of each arm. The matched posterior is the prior of the next
    step, and the whole buffer is added to it again, so that it soon explores little."""

    def __init__(self, network, n_arms, memory, train=None, per_arm=16, size=0.01, decay=0.05,
                 seed=0, **settings):
        super().__init__(network, n_arms, memory, nlts.no_prior, seed=seed, **settings)
        self.batch = per_arm * n_arms
        self.size = size                              # of a step on the covariances, at t = 1
        self.optimizer = RMSProp(decay)               # `train` is not asked
        self.R2 = np.zeros(n_arms)                    # of all tuples of an arm

    def update(self, context, arm, reward):
        """Observe the reward that the arm paid in this context; learn, if there is a batch."""
        self.buffer.add(context, arm, reward)
        self.arms[arm].update(self.phi(context), reward)
        self.R2[arm] += reward ** 2
        self.t += 1
        if self.t >= self.batch:
            self.learn()

    def learn(self):
        """Train on a batch, match each covariance on it, and put in the buffer."""
        contexts, played, rewards = self.buffer.arrays()
        rows = self.rng.integers(len(played), size=self.batch)
        E_old = nlts.last_layer_activations(self.network, contexts[rows])
        self.optimizer.step(self.network, contexts[rows], played[rows], rewards[rows])
        phi = nlts.last_layer_activations(self.network, contexts)
        weights = nlts.last_layer_weights(self.network)
        for i, arm in enumerate(self.arms):
            drawn = played[rows] == i
            S = arm.root @ arm.root.T
            S = match_step(S, E_old[drawn], phi[rows][drawn], self.size / self.t)
            r = rewards[played == i]
            forgotten = arm.n - len(r)
            a = self.config.a0 + forgotten / 2
            b = self.config.b0 + max(self.R2[i] - r @ r, 0) / 2
            self.arms[i] = nlts.BayesianLinearRegression(np.linalg.inv(S), weights[i], a, b,
                                                         forgotten)
            self.arms[i].update(phi[played == i], r)


def match_step(S, E_old, E_new, size, clip=5.0, least=1e-5):
    """One step of projected gradient descent towards Eq. 6: under E_new the covariance S is to give
    the s² that it gave under E_old."""
    s2 = ((E_old @ S) * E_old).sum(1)
    misfit = ((E_new @ S) * E_new).sum(1) - s2
    gradient = 2 * (E_new.T * misfit) @ E_new
    gradient *= clip / max(np.linalg.norm(gradient), clip)
    values, Q = np.linalg.eigh(S - size * gradient)
    return (Q * (values.clip(0) + least)) @ Q.T


def wide_network(dim, n_arms, seed=0):
    """LiM2's network without output bias: first weights within 0.3."""
    network = nlts.MLP(dim, n_arms, seed=seed)
    network.input.data *= 0.3 * dim ** 0.5
    return network


class NeuralTS(nlts.EpsilonGreedy):
    """The reward of arm i is sampled from N(D(b)_i, nu² lam g'U⁻¹g / m): g is the gradient of
    D(b)_i by all weights, m the width of the network, and U = lam I + sum g g'/m over the plays, of
    which the diagonal is kept. The network is one for all arms, and is trained on all tuples."""

    def __init__(self, network, n_arms, memory, nu=1.0, **arguments):
        super().__init__(network, n_arms, memory, 0.0, **arguments)
        self.nu = nu
        lam = self.config.lam
        self.U_input = np.full(network.input.shape, lam)                     # (g, d)
        self.U_bias = np.full(network.bias.shape, lam)                       # (g,)
        self.U_weights = np.full(network.weights.shape, lam)                 # (N, g)

    def gradients(self, context):
        """D(b) (N,), and squared gradients: of D(b)_i by its own weights (g,), and of each D(b)_i
        by the inputs of the ReLUs (N, g)."""
        phi = self.phi(context)
        weights = nlts.last_layer_weights(self.network)
        return weights @ phi, phi ** 2, weights ** 2 * (phi > 0)

    def scores(self, context):
        """The sampled reward of each arm, (N,)."""
        return self.rng.normal(*self.estimate(context))

    def estimate(self, context):
        """Mean and standard deviation of each arm's reward, (N,) both."""
        D, by_weights, by_inputs = self.gradients(context)
        inner = 1 / self.U_bias + (1 / self.U_input) @ context ** 2          # (g,)
        total = (by_weights / self.U_weights + by_inputs * inner).sum(1)     # g'U⁻¹g of each arm
        return D, self.nu * np.sqrt(self.config.lam * total / len(inner))

    def update(self, context, arm, reward):
        """Observe the reward that the arm paid in this context; every L steps, learn."""
        _, by_weights, by_inputs = self.gradients(context)
        m = len(by_weights)
        self.U_weights[arm] += by_weights / m
        self.U_bias += by_inputs[arm] / m
        self.U_input += np.outer(by_inputs[arm], context ** 2) / m
        super().update(context, arm, reward)
