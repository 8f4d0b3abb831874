"""The tiny run of docs/reading.html: two arms, three features, six tuples, one learning phase."""
import copy

import numpy as np
import torch

import nlts

CONTEXTS = np.array([[1, 0], [0, 1], [2, 1], [1, 1], [2, 0], [1, 2]], float)
SEED = 4  # of four tuples of arm 0, two are kept and two forgotten


def play():
    """Arm i pays b_i. Four tuples are kept; the learning phase comes after the sixth. {name: value}
    of what a reader can check: tuples, both arms' samples before the sixth, arm 0's posterior."""
    network = nlts.MLP(2, 2, hidden=3)
    network.input.data[:] = torch.tensor([[1, 0], [0, 1], [1, -1]])
    network.weights.data[:] = torch.tensor([[0.5, 0, 0], [0, 0.5, 0]])
    phi = nlts.last_layer_activations(network, CONTEXTS)
    run = {"contexts": CONTEXTS, "phi": phi, "played": [], "rewards": []}

    def prior(forgotten, E_old, E_new, weights, lam):
        run.update(before=agent.arms[0], forgotten=forgotten[0], E_old=E_old[0], E_new=E_new[0])
        return nlts.likelihood_matching(forgotten, E_old, E_new, weights, lam)

    agent = nlts.NeuralLinearTS(network, 2, memory=4, prior=prior, L=6, P=20, batch=4, lr=0.05,
                                initial_pulls=1, seed=SEED)
    for context in CONTEXTS:
        rng = copy.deepcopy(agent.rng)
        run["nu2"] = agent.noise(agent.arms, agent.config, rng)
        run["mu_tilde"] = [arm.sample(run["nu2"][i], rng) for i, arm in enumerate(agent.arms)]
        arm = agent.act(context)
        run["played"].append(arm)
        run["rewards"].append(context[arm])
        agent.update(context, arm, context[arm])
    kept = agent.buffer.arrays()[0].tolist()
    run["kept"] = [context in kept for context in CONTEXTS.tolist()]
    S = np.linalg.inv(agent.arms[0].Phi0)
    matched = np.diag(run["E_new"] @ S @ run["E_new"].T)
    return run | {"config": agent.config, "seed": SEED, "after": agent.arms[0], "S": S,
                  "scores": run["mu_tilde"] @ phi[-1], "s2": run["forgotten"].s2(run["E_old"]),
                  "w": np.linalg.eigvalsh(S), "matched": matched}


def show(x, width=0):
    """Numbers with at most four decimals, the rows of a matrix under each other."""
    if np.ndim(x) == 0:
        return f"{round(float(x), 4) + 0.0:.10g}".rjust(width)
    if np.ndim(x) == 1:
        return "[" + ", ".join(show(entry, width) for entry in x) + "]"
    width = max(len(show(entry)) for entry in np.ravel(x))
    return "\n".join(show(row, width) for row in x)
