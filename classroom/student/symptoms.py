"""Small experiments that show what a planted bug does, beside the numbers of a right program.

    python symptoms.py            repeat the experiment of this folder with nlts.py as it is now
"""
import json
import sys
from pathlib import Path

import numpy as np


def posterior(nlts):
    """An arm sees 40 tuples; then the first 20 are taken out again."""
    rng = np.random.default_rng(0)
    E, phi = rng.normal(size=(40, 3)), np.array([1.0, -0.5, 2.0])
    r = E @ [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=40)
    arm = nlts.BayesianLinearRegression(2 * np.eye(3), np.array([1.0, 1.0, 0.0]), 6.0, 6.0)
    rows = []
    for t in range(0, 40, 4):
        arm.update(E[t:t + 4], r[t:t + 4])
        rows.append((t + 4, *arm.predict(phi)))
    left = arm.without(E[:20], r[:20])
    rows.append((-20, *left.predict(phi)))
    names = ("mean of a prediction", "scale of a prediction", "degrees of freedom")
    return {f"{name}, by tuples (-20: taken out)": [(row[0], float(row[i + 1])) for row in rows]
            for i, name in enumerate(names)}


def sampling(nlts):
    """Draws of a prediction, and the regret of Algorithm 1."""
    rng = np.random.default_rng(0)
    E, phi = rng.normal(size=(30, 4)), np.array([1.0, -1.0, 0.5, 2.0])
    arm = nlts.BayesianLinearRegression(np.eye(4), np.zeros(4), 6.0, 6.0)
    arm.update(E, E.sum(1) + 0.3 * rng.normal(size=30))
    p = np.linspace(0.05, 0.95, 13)
    quantiles = np.quantile([phi @ arm.sample(rng)[1] for _ in range(4000)], p)
    agent, means, regret = nlts.LinearTS(4, 3, seed=0), rng.normal(size=(3, 4)), [0.0]
    for context in rng.normal(size=(400, 4)):
        expected = means @ context
        arm = agent.act(context)
        agent.update(context, arm, expected[arm] + 0.3 * rng.normal())
        regret.append(regret[-1] + float(expected.max() - expected[arm]))
    pairs = list(zip(p.tolist(), quantiles.tolist(), strict=True))
    return {"quantile of a sampled prediction, by probability": pairs,
            "regret of Algorithm 1, by step": [(t, regret[t]) for t in range(0, 401, 40)]}


def memory(nlts):
    """A buffer of 30 tuples in which one arm is played seldom."""
    rng, buffer = np.random.default_rng(0), nlts.ReplayBuffer(30)
    count, age = [], []
    for t in range(1, 301):
        arm = int(rng.choice(3, p=[0.98, 0.01, 0.01])) if t > 15 else t % 3
        buffer.add(np.array([float(t)]), arm, 0.0)
        if t % 20 == 0:
            count.append((t, len(buffer.rows_of(2)[0])))
            age.append((t, float(t - np.mean(buffer.rows_of(0)[0]))))
    return {"tuples of the rare arm 2, by step": count, "mean age of arm 0's tuples, by step": age}


def transported(nlts):
    """Features that change linearly: what the prior and the buffer say, and a regression on all."""
    rng, mean, spread = np.random.default_rng(0), [], []
    E, A = rng.normal(size=(40, 3)), rng.normal(size=(3, 3)) + 2 * np.eye(3)
    r = E @ [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=40)
    for m in range(5, 36, 5):
        Phi_old = np.eye(3) + E[:m].T @ E[:m]
        mu_old = np.linalg.solve(Phi_old, E[:m].T @ r[:m])
        Phi0, mu0 = nlts.invertible_prior(E[m:m + 3], E[m:m + 3] @ A.T, mu_old, Phi_old)
        phi = A @ np.array([1.0, -0.5, 2.0])
        mean.append((m, float(phi @ mu0)))
        spread.append((m, float(phi @ np.linalg.solve(Phi0, phi))))
    return {"prediction under the new features, by tuples": mean, "its s2, by tuples": spread}


def phases(nlts):
    """Algorithm 2 over four learning phases."""
    rng, count, mean, spread = np.random.default_rng(0), [], [], []
    agent = nlts.NeuralLinearTS(nlts.MLP(4, 2, 6, seed=1), 2, memory=20, L=30, P=60, batch=16,
                                lr=1e-2, seed=2)
    test = rng.normal(size=(20, 4))
    for t, context in enumerate(rng.normal(size=(120, 4)), 1):
        arm = t % 2
        agent.update(context, arm, float(context[arm] + 0.3 * rng.normal()))
        if t % 10 == 0:
            phi = nlts.last_layer_activations(agent.network, test)
            count.append((t, 2 * (agent.arms[0].a - 6) - t // 2))
            mean.append((t, float((phi @ agent.arms[0].mu_hat).mean())))
            spread.append((t, float(np.sqrt(agent.arms[0].variance(phi)).mean())))
    return {"mean prediction of arm 0, by step": mean, "mean s of arm 0, by step": spread,
            "observations counted minus observations made, by step": count}


EXPERIMENTS = {"blr": posterior, "thompson": sampling, "buffer": memory,
               "invertible": transported, "limited": phases}


def table(expected, actual):
    """Both side by side, with a mark where they differ."""
    lines, wrong = [], 0
    for title, rows in expected.items():
        lines += ["", title, f"{'':>10}{'expected':>14}{'this program':>14}"]
        for (x, right), (_, y) in zip(rows, actual[title], strict=True):
            differs = not np.isclose(right, y, rtol=1e-4, atol=1e-6)
            wrong += differs
            lines.append(f"{x:>10.4g}{right:>14.4g}{y:>14.4g}" + ("   <--" if differs else ""))
    last = f"{wrong} numbers differ." if wrong else "All numbers are as expected."
    return "\n".join([*lines, "", last])


if __name__ == "__main__":
    saved = json.loads(Path(__file__).with_name("symptom.json").read_text())
    sys.path.insert(0, str(Path(__file__).parent))
    import nlts as mended
    print(table(saved["expected"], EXPERIMENTS[saved["part"]](mended)))
