"""The tiny run of docs/reading.html: two arms, three features, six tuples, one learning phase."""
import copy

import numpy as np
import torch

import nlts

CONTEXTS = np.array([[1, 0], [0, 1], [2, 1], [1, 1], [2, 0], [1, 2]], float)


def play(seed=0):
    """Arm i pays b_i. Four tuples are kept; the learning phase comes after the sixth."""
    network = nlts.MLP(2, 2, hidden=3)
    network.input.data[:] = torch.tensor([[1, 0], [0, 1], [1, -1]])
    network.weights.data[:] = torch.tensor([[0.5, 0, 0], [0, 0.5, 0]])
    run = {"played": [], "rewards": []}

    def prior(left, E_old, E_new, weights, lam):
        priors = nlts.likelihood_matching(left, E_old, E_new, weights, lam)
        run.update(before=agent.arms, left=left, E_old=E_old, E_new=E_new, priors=priors)
        return priors

    agent = nlts.NeuralLinearTS(network, 2, memory=4, prior=prior, L=6, P=20, batch=4, lr=0.05,
                                initial_pulls=1, seed=seed)
    run["phi"] = nlts.last_layer_activations(network, CONTEXTS)
    for context in CONTEXTS:
        rng = copy.deepcopy(agent.rng)
        run["samples"] = [arm.sample(rng) for arm in agent.arms]
        arm = agent.act(context)
        run["played"].append(arm)
        run["rewards"].append(context[arm])
        agent.update(context, arm, context[arm])
    kept = [context.tolist() for context, _, _ in agent.buffer.tuples]
    run["kept"] = [context.tolist() in kept for context in CONTEXTS]
    return run | {"after": agent.arms}


def number(x):
    """At most four decimals."""
    return f"{round(float(x), 4) + 0.0:.10g}"


def show(name, x):
    """'name = numbers', the rows of a matrix under each other."""
    rows = [[number(entry) for entry in row] for row in np.atleast_2d(x)]
    if np.ndim(x) == 0:
        return f"{name} = {rows[0][0]}"
    width = max(len(entry) for row in rows for entry in row) if np.ndim(x) == 2 else 0
    lines = ["[" + ", ".join(entry.rjust(width) for entry in row) + "]" for row in rows]
    return f"{name} = " + ("\n" + " " * (len(name) + 3)).join(lines)


def values(run):
    """What stands beside each step: of arm 0, after the sixth tuple and in the learning phase."""
    before, left, after = run["before"][0], run["left"][0], run["after"][0]
    Phi0, mu0 = run["priors"][0]
    E_old, E_new, phi = run["E_old"][0], run["E_new"][0], run["phi"][-1]
    S = np.linalg.inv(Phi0)
    nu2, mu_tilde = zip(*run["samples"], strict=True)
    named = {
        "first": ("Phi0", nlts.Config.lam * np.eye(3)), "a0": ("a0 = b0", nlts.Config.a0),
        "context": ("b(6)", CONTEXTS[-1]), "phi": ("phi(6)", phi),
        "nu2": ("nu2 of both arms", nu2), "mu_tilde": ("mu_tilde", mu_tilde[0]),
        "other": ("mu_tilde of arm 1", mu_tilde[1]),
        "scores": ("phi' mu_tilde", mu_tilde @ phi), "arm": ("a(6)", run["played"][-1]),
        "precision": ("Phi0 + Phi", before.precision), "f": ("f", before.f),
        "mu_hat": ("mu_hat", before.mu_hat), "a": ("a", before.a), "R2": ("R2", before.R2),
        "b": ("b", before.b), "E_old": ("E_old", E_old), "E_new": ("E_new", E_new),
        "Phi_old": ("Phi_old", left.precision), "s2": ("s2", left.variance(E_old)), "S": ("S", S),
        "matched": ("phi' S phi", np.einsum("ja,ab,jb->j", E_new, S, E_new)), "mu0": ("mu0", mu0),
        "new_precision": ("Phi0 + Phi", after.precision), "new_mean": ("mu_hat", after.mu_hat),
        "new_a": ("a", after.a), "new_b": ("b", after.b),
    }
    return {key: show(name, x) for key, (name, x) in named.items()}


def table(run):
    """The six tuples, in HTML."""
    head = "".join(f'<th scope="col">{x}</th>' for x in ("t", "b", "phi", "arm", "r", "buffer"))
    rows = []
    for t in range(len(CONTEXTS)):
        vectors = [", ".join(map(number, x[t])) for x in (CONTEXTS, run["phi"])]
        state = "kept" if run["kept"][t] else "forgotten"
        cells = [t + 1, *vectors, run["played"][t], number(run["rewards"][t]), state]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
