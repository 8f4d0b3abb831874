"""The same training as nlts.train, about 8 times faster: for experiments of many runs.

It is used for an nlts.MLP only, and only while nlts.train and nlts.MLP are what it was compared
with: COMPARED has the hashes of their syntax trees, and tests/test_fast.py the comparison.
"""
from pathlib import Path

import numpy as np

import nlts
from lab import keys

COMPARED = {"train": "5c918fbdd523", "MLP": "b837d83a5e0d"}


def changed():
    """The names in nlts.py that are not what was compared."""
    return [name for name, compared in COMPARED.items()
            if keys.tree_hash(Path(nlts.__file__).resolve(), name) != compared]


def training_of(network):
    """`train` if it does what nlts.train does with this network, else nlts.train."""
    return train if type(network) is nlts.MLP and not changed() else nlts.train


def train(network, buffer, config, rng, beta1=0.9, beta2=0.999, eps=1e-8):
    """nlts.train of an nlts.MLP, up to rounding: explicit gradients, the same batches, Adam."""
    n_arms, g = network.weights.shape
    d, B = network.input.shape[1], config.batch
    contexts, played, rewards = buffer.arrays()
    rng.integers(2 ** 31)                             # as nlts.train draws it, for torch
    batches = rng.integers(len(played), size=(config.P, B))
    parameters = [p.detach().numpy() for p in (network.input, network.bias, network.weights)]
    theta = np.concatenate([p.ravel() for p in parameters])
    gradient, m, v = np.zeros((3, len(theta)))

    def views(x):
        return x[:g * d].reshape(g, d), x[g * d:g * d + g], x[g * d + g:].reshape(n_arms, g)

    W, bias, V = views(theta)
    dW, dbias, dV = views(gradient)
    D, each = np.zeros((B, n_arms)), np.arange(B)
    for step, rows in enumerate(batches, 1):
        X, arms = contexts[rows], played[rows]
        phi = np.maximum(X @ W.T + bias, 0)
        output = np.einsum("bg,bg->b", phi, V[arms])
        D[:] = 0
        D[each, arms] = 2 / B * (output - rewards[rows])      # only the arm that was played
        np.matmul(D.T, phi, out=dV)
        dphi = D @ V
        dphi *= phi > 0
        np.matmul(dphi.T, X, out=dW)
        np.sum(dphi, axis=0, out=dbias)
        # Adam; m and v without their factors 1 - beta, which the step size has
        m *= beta1
        m += gradient
        v *= beta2
        v += np.multiply(gradient, gradient, out=gradient)
        scale1 = (1 - beta1) / (1 - beta1 ** step)
        scale2 = np.sqrt((1 - beta2) / (1 - beta2 ** step))
        np.sqrt(v, out=gradient)
        gradient += eps / scale2
        np.divide(m, gradient, out=gradient)
        gradient *= config.lr * scale1 / scale2
        theta -= gradient
    for mine, new in zip(parameters, views(theta), strict=True):
        mine[...] = new
