"""The same training and text network as in nlts.py, faster: for experiments of many runs."""
import numpy as np
import torch

import nlts


def train(network, buffer, config, rng):
    """nlts.train for an nlts.MLP: explicit gradients of Eq. 3, the same mini-batches and Adam.

    Up to rounding the network learns what nlts.train teaches it, and rng ends in the same state.
    """
    n_arms, g = network.weights.shape
    d, B = network.input.shape[1], config.batch
    contexts, arms, rewards = buffer.arrays()
    rng.integers(2 ** 31)                             # as nlts.train draws it, for torch
    batches = rng.integers(len(arms), size=(config.P, B))
    parameters = [p.detach().numpy() for p in (network.input, network.bias, network.weights)]
    theta = np.concatenate([p.ravel() for p in parameters])
    gradient = np.zeros_like(theta)

    def views(x):
        return x[:g * d].reshape(g, d), x[g * d:g * d + g], x[g * d + g:].reshape(n_arms, g)

    W, bias, V = views(theta)
    dW, dbias, dV = views(gradient)
    adam = Adam(theta, gradient, config.lr)
    X, phi, dphi = np.empty((B, d)), np.empty((B, g)), np.empty((B, g))
    D, each = np.zeros((B, n_arms)), np.arange(B)
    for rows in batches:
        np.take(contexts, rows, axis=0, out=X)
        played = arms[rows]
        np.matmul(X, W.T, out=phi)
        phi += bias
        np.maximum(phi, 0, out=phi)
        output = np.einsum("bg,bg->b", phi, V[played])
        D[:] = 0
        D[each, played] = 2 / B * (output - rewards[rows])    # only the arm that was played
        np.matmul(D.T, phi, out=dV)
        np.matmul(D, V, out=dphi)
        dphi *= phi > 0
        np.matmul(dphi.T, X, out=dW)
        np.sum(dphi, axis=0, out=dbias)
        adam.step()
    for mine, new in zip(parameters, views(theta), strict=True):
        mine[...] = new


class Adam:
    """Adam in place. m and v are kept without their factors 1 - beta: the step size has them."""

    def __init__(self, theta, gradient, lr, beta1=0.9, beta2=0.999, eps=1e-8):
        self.theta, self.gradient = theta, gradient
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.m, self.v = np.zeros_like(theta), np.zeros_like(theta)
        self.steps = 0

    def step(self):
        """One step; the gradient's array is used up."""
        self.steps += 1
        g = self.gradient
        scale1 = (1 - self.beta1) / (1 - self.beta1 ** self.steps)
        scale2 = np.sqrt((1 - self.beta2) / (1 - self.beta2 ** self.steps))
        self.m *= self.beta1
        self.m += g
        self.v *= self.beta2
        np.multiply(g, g, out=g)
        self.v += g
        np.sqrt(self.v, out=g)
        g += self.eps / scale2
        np.divide(self.m, g, out=g)
        g *= self.lr * scale1 / scale2
        self.theta -= g


class FastTextCNN(nlts.TextCNN):
    """nlts.TextCNN, faster: the same parameters, features and gradients, up to rounding.

    A convolution is the sum, over its width, of products of embeddings and weights: each product is
    computed once a word, not once a place. And only the place of the maximum gets a gradient.
    """

    def features(self, x):
        """phi: (n, words) ids -> (n, g)."""
        words, place = x.long().unique(return_inverse=True)
        embedding = self.embedding(words)                            # (different words, embedding)
        pooled = [self._pooled(convolution, embedding, place) for convolution in self.convolutions]
        return self.dense(torch.cat(pooled, 1))

    @staticmethod
    def _pooled(convolution, embedding, place):
        """The maximum over time of one convolution: (n, filters)."""
        filters, _, width = convolution.weight.shape
        products = [embedding @ convolution.weight[:, :, k].T for k in range(width)]
        with torch.no_grad():
            ends = place.shape[1] - width + 1
            at = sum(products[k][place[:, k:ends + k]] for k in range(width)).argmax(1)
        each = torch.arange(filters)
        most = sum(products[k][place.gather(1, at + k), each] for k in range(width))
        return torch.relu(most + convolution.bias)
