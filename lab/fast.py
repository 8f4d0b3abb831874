"""The same training, matching and text network as in nlts.py, faster: for experiments of many runs.
"""
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg.lapack import dpotrf, dpotrs
from torch import nn

import nlts


def train(network, buffer, config, rng, beta1=0.9, beta2=0.999, eps=1e-8):
    """nlts.train of an nlts.MLP, up to rounding: explicit gradients, the same batches, Adam."""
    n_arms, g = network.weights.shape
    d, B = network.input.shape[1], config.batch
    contexts, arms, rewards = buffer.arrays()
    rng.integers(2 ** 31)                             # as nlts.train draws it, for torch
    batches = rng.integers(len(arms), size=(config.P, B))
    parameters = [p.detach().numpy() for p in (network.input, network.bias, network.weights)]
    theta = np.concatenate([p.ravel() for p in parameters])
    gradient, m, v = np.zeros((3, len(theta)))

    def views(x):
        return x[:g * d].reshape(g, d), x[g * d:g * d + g], x[g * d + g:].reshape(n_arms, g)

    W, bias, V = views(theta)
    dW, dbias, dV = views(gradient)
    D, each = np.zeros((B, n_arms)), np.arange(B)
    for step, rows in enumerate(batches, 1):
        X, played = contexts[rows], arms[rows]
        phi = np.maximum(X @ W.T + bias, 0)
        output = np.einsum("bg,bg->b", phi, V[played])
        D[:] = 0
        D[each, played] = 2 / B * (output - rewards[rows])    # only the arm that was played
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


# Eq. 6 ----------------------------------------------------------------------------------------


def match_covariance(E_new, s2, ridge=1e-3, floor=1e-2):
    """nlts.match_covariance, faster: the same S, to 1e-7 of the objective's second term.

    The same Newton's method for the same y, but (Qi and Sun, 2006) a step is solved by conjugate
    gradients, whose products need no n x n matrix, with a preconditioner that is seldom factorized;
    and where there are more tuples than pairs of features, by equations between pairs, from a
    better start. Features that are 0 in all rows, and directions that no row has, are left out:
    there S is at the floor.
    """
    nlts._check(1e-6 <= ridge < 1 and 1e-6 <= floor < 1,
                "ridge, floor: expected both from 1e-6 to 1")
    E, s2, scale = nlts._without_units(E_new, s2)         # in these units rho = ridge
    alive = E.any(0)
    A = np.ascontiguousarray(E.T[alive])                  # (k, n): a column per tuple
    V = None
    if A.shape[0] > A.shape[1]:
        V, A = np.linalg.qr(A)                            # k = n
    dual = _newton(A, s2, ridge, floor)
    root = dual.Q * np.sqrt(scale * (dual.x - floor))
    if V is not None:
        root = V @ root
    S = np.zeros((len(alive), len(alive)))
    S[np.ix_(alive, alive)] = root @ root.T
    S.flat[::len(S) + 1] += scale * floor
    return S


class _Dual(NamedTuple):
    """theta(y) and its gradient; Z(y) = Q diag(w) Q', S = Q diag(x) Q', tuples P = Q'A."""
    y: np.ndarray
    theta: float
    gradient: np.ndarray
    w: np.ndarray                                         # (k,), ascending
    x: np.ndarray                                         # (k,)
    Q: np.ndarray                                         # (k, k)
    P: np.ndarray                                         # (k, n)


def _dual_at(y, A, s2, rho, least):
    """The dual function at y: one eigendecomposition, half of all the time for small problems."""
    w, Q = np.linalg.eigh((A * y) @ A.T)
    x = np.maximum(w, least)
    P = Q.T @ A
    theta = rho / 2 * (y @ y) - s2 @ y + x @ (2 * w - x) / 2
    return _Dual(y, theta, x @ (P * P) + rho * y - s2, w, x, Q, P)


def _newton(A, s2, rho, least):
    """The minimum of theta: inexact Newton steps. Far from it they are solved roughly, and the
    first two are made longer by half, since they are too short nearly always."""
    k, n = A.shape
    many = n > k * (k + 1) / 2
    if many:
        y = _start_pairs(A, s2, rho, least)
    else:
        factor = _factor((A.T @ A) ** 2, rho)
        y = dpotrs(factor, s2, lower=1)[0]                # the solution if none is raised
    dual = _dual_at(y, A, s2, rho, least)
    products = 0
    for step in range(1000):
        size, rest = rho * (dual.x @ dual.x), dual.gradient @ dual.gradient
        if rest <= 1e-7 * size + 1e-30 * (s2 @ s2):       # or rounding
            return dual
        raised = np.searchsorted(dual.w, least, side="right")
        above = dual.w[raised:, None]
        share = (above - least) / (above - dual.w[:raised])
        weights = np.ones((k - raised, k))                # of p_a p_b, a above the floor, b any
        weights[:, :raised] = 2 * share
        far = rest > 10 * size
        if many:
            d = _solve_pairs(dual.P, weights, rho, -dual.gradient)
        else:
            if step == 2 or products > 4:                 # shares have settled, or have changed
                factor = _factor(_nearly(dual.P, raised, share), rho)
            enough = 1e-2 * rest if far else max(1e-4 * rest, 5e-8 * size)
            d, products = _conjugate_gradients(dual, raised, weights, rho, factor, enough)
        dual = _line_search(dual, d, 1.5 if far and step < 2 else 1.0, A, s2, rho, least)
    raise ValueError(f"ridge: expected a larger one, {rho} is out of reach for this E_new and s2")


def _line_search(dual, d, length, A, s2, rho, least):
    """The first of y + length d, y + length/2 d, ... where theta has fallen."""
    slope = dual.gradient @ d
    while True:
        new = _dual_at(dual.y + length * d, A, s2, rho, least)
        if new.theta <= dual.theta + 1e-4 * length * slope + 1e-12 * abs(dual.theta):
            return new
        length /= 2


def _factor(H, rho):
    """Cholesky factor of H + rho I, in place of H."""
    H.flat[::len(H) + 1] += rho
    return dpotrf(H.T, lower=1, overwrite_a=1, clean=0)[0]


def _nearly(P, raised, share):
    """H - rho I with share_ab of rank one, f_a h_b with its sums: then sums over pairs are products
    of sums, (sum_a f_a p_ja p_ka) (sum_b h_b p_jb p_kb)."""
    low, high = P[:raised], P[raised:]
    H = (high.T * share.sum(1)) @ high
    H *= (low.T * share.sum(0)) @ low
    H *= 2 / max(share.sum(), 1e-300)
    H += (high.T @ high) ** 2
    return H


def _conjugate_gradients(dual, raised, weights, rho, factor, enough):
    """d with ||H d + gradient||^2 <= enough, and how many products with H it took."""
    P, high = dual.P, dual.P[raised:]
    d, rest = np.zeros_like(dual.y), -dual.gradient
    z = direction = dpotrs(factor, rest, lower=1)[0]
    rest_z = rest @ z
    for products in range(1, 10 * len(d) + 1):
        pairs = (high * direction) @ P.T                  # (above, all)
        pairs *= weights
        pairs = pairs @ P                                 # (above, n)
        pairs *= high
        H_direction = rho * direction + pairs.sum(0)
        length = rest_z / (direction @ H_direction)
        d = d + length * direction
        rest = rest - length * H_direction
        if rest @ rest <= enough:
            return d, products
        z = dpotrs(factor, rest, lower=1)[0]
        rest_z, before = rest @ z, rest_z
        direction = z + rest_z / before * direction
    return d, products                                    # no closer, by rounding


def _pairs(P, weights):
    """M (pairs, n): a row sqrt(weight) p_a p_b for each a above the floor and each b up to a."""
    raised = len(P) - len(weights)
    a, b = np.tril_indices(len(weights), raised, len(P))
    weights = weights[a, b]
    a = a + raised
    M = P[a] * P[b]
    M *= np.sqrt(np.where((b >= raised) & (b < a), 2 * weights, weights))[:, None]
    return M


def _solve_pairs(P, weights, rho, b):
    """H^-1 b for H = rho I + M'M, which is (b - M'(rho I + M M')^-1 M b) / rho."""
    if not len(weights):                                  # all are raised
        return b / rho
    M = _pairs(P, weights)
    inner = dpotrs(_factor(M @ M.T, rho), M @ b, lower=1)[0]
    return (b - inner @ M) / rho


def _start_pairs(A, s2, rho, least):
    """A y to start from where tuples are many. Then the misfit is far from 0, Z = S - (multiplier
    of S >= least I) / rho has huge negative eigenvalues, and Newton's method needs 25 to 50 steps,
    or hundreds with a small ridge, to get there. 100 steps of ADMM, which has the multiplier in
    units of its own, cost as much as a few of them, and leave a dozen."""
    k = len(A)
    M = _pairs(A, np.ones((k, k)))
    a, b = np.tril_indices(k)
    length = np.where(a > b, np.sqrt(2), 1.0)             # of a pair's entries in ||S||
    Gram, target = M @ M.T, M @ s2
    tau = 0.25 * Gram.trace() / len(Gram)
    with_rho, with_tau = _factor(Gram.copy(), rho), _factor(Gram, rho + tau)

    def raised(pairs):
        S = np.zeros((k, k))
        S[a, b] = pairs / length
        w, Q = np.linalg.eigh(S)                          # of the lower triangle
        return ((Q * np.maximum(w, least)) @ Q.T)[a, b] * length, w[0] >= least

    S = dpotrs(with_rho, target, lower=1)[0]
    if raised(S)[1]:
        return (s2 - S @ M) / rho                         # the solution: none is raised
    X = U = np.zeros(len(S))
    for _ in range(100):
        S = dpotrs(with_tau, target + tau * (X - U), lower=1)[0]
        S = 1.6 * S - 0.6 * X                             # over-relaxed, as is usual
        new = raised(S + U)[0]
        X, U = new, U + S - new
    return dpotrs(with_rho, X + tau / rho * U, lower=1)[0] @ M       # Z(y) = X + tau / rho U


class FastTextCNN(nlts.TextCNN):
    """nlts.TextCNN, the same up to rounding. A convolution is a sum of products of embeddings and
    weights, here once a word and not once a place; only the place of the maximum gets a gradient.
    """

    def features(self, x):
        """phi: (n, words) ids -> (n, g)."""
        words, place = x.long().unique(return_inverse=True)
        embedding = self.embedding(words)                            # (different words, size)
        pooled = []
        for convolution in self.convolutions:
            filters, size, width = convolution.weight.shape
            weight = convolution.weight.permute(1, 2, 0).reshape(size, width * filters)
            products = (embedding @ weight).reshape(-1, filters)     # row: width * word + k
            rows = width * place.unfold(1, width, 1) + torch.arange(width)   # (n, places, width)
            with torch.no_grad():
                sums = nn.functional.embedding_bag(rows.flatten(0, 1), products, mode="sum")
                at = sums.reshape(*rows.shape[:2], filters).max(1).indices   # (n, filters)
            rows = rows.gather(1, at[:, :, None].expand(-1, -1, width))      # (n, filters, width)
            most = products[rows, torch.arange(filters)[:, None]].sum(2)
            pooled.append(torch.relu(most + convolution.bias))
        return self.dense(torch.cat(pooled, 1))
