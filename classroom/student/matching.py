# ruff: noqa: F821
def dual_gradient(E, s2, rho, least, y):
    """The gradient of theta by y, (n,): phi_j'S phi_j + rho y_j - s_j^2 of each tuple j.

    E (n, g), s2 (n,) and y (n,) are as in `_dual`, which gives theta and S = Q diag(x) Q'.
    """
    _, _, x, Q = _dual(E, s2, rho, least, y)
    return (E @ Q) ** 2 @ x + rho * y - s2


def newton_step(E, s2, rho, least, y):
    """The step (n,) with H step = -gradient, where H is the second derivative of theta at y.

    The docstring of `match_covariance` has H. No eigenvalue is at the bound.
    """
    _, w, _, Q = _dual(E, s2, rho, least, y)
    p, free = E @ Q, w > least
    share = (w[free, None] - least) / (w[free, None] - w[~free])
    M = (np.sqrt(2 * share) * p[:, free, None] * p[:, None, ~free]).reshape(len(y), -1)
    H = rho * np.eye(len(y)) + (p[:, free] @ p[:, free].T) ** 2 + M @ M.T
    return -np.linalg.solve(H, dual_gradient(E, s2, rho, least, y))
