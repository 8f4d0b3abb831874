# ruff: noqa: F821
def dual_value(y, E, t, ridge, floor):
    """theta(y) = ridge y'y / 2 - t'y + sum_k x_k (w_k - x_k / 2): a number.

    w are the eigenvalues of A(y) = E' diag(y) E, and x_k = max(w_k, floor).
    """
    w = np.linalg.eigvalsh((E.T * y) @ E)
    x = np.maximum(w, floor)
    return ridge * y @ y / 2 - t @ y + x @ (w - x / 2)


def dual_gradient(y, E, t, ridge, floor):
    """The gradient of dual_value by y, (n,)."""
    w, Q = np.linalg.eigh((E.T * y) @ E)
    p = E @ Q
    return ridge * y - t + (p * p) @ np.maximum(w, floor)


def newton_step(y, E, t, ridge, floor):
    """d (n,) with H d = -gradient. H is the derivative of dual_gradient; no w_k is at the floor.

    Daleckii and Krein: S(y) moves in the direction d by Q (W * (Q' A(d) Q)) Q', where Q holds the
    eigenvectors of A(y) and W_kl = (x_k - x_l) / (w_k - w_l), or its limit where w_k = w_l.
    """
    w, Q = np.linalg.eigh((E.T * y) @ E)
    x, p = np.maximum(w, floor), E @ Q
    far = np.abs(w - floor)
    W = np.add.outer(x - floor, x - floor) / np.add.outer(far, far)  # the same slopes
    pairs = p[:, :, None] * p[:, None, :]                        # (n, g, g)
    H = np.einsum("jkl,kl,ikl->ji", pairs, W, pairs) + ridge * np.eye(len(y))
    return -np.linalg.solve(H, dual_gradient(y, E, t, ridge, floor))
