"""LiM2 and NeuralTS against their equations."""
import numpy as np
import pytest
import torch

import nlts
from lab import fast
from studies.peers_agents import LiM2, NeuralTS, match_step, wide_network

DIM, N_ARMS = 4, 3


def play(agent, steps, seed=0):
    """The regret of an agent on a problem with a best arm per context; and the contexts, arms."""
    rng = np.random.default_rng(seed)
    regret, seen = [], []
    for _ in range(steps):
        context = rng.normal(size=DIM)
        arm = agent.act(context)
        agent.update(context, arm, context[arm] + 0.1 * rng.normal())
        regret.append(context[:N_ARMS].max() - context[arm])
        seen.append((context, arm))
    return np.array(regret), seen


# LiM2 ---------------------------------------------------------------------------------------------

def random_rows(seed=0, n=7, g=5):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(g, g))
    return root @ root.T, rng.normal(size=(n, g)), rng.normal(size=(n, g))


def test_a_matching_step_goes_down_the_gradient():
    """Of the squared misfit of Eq. 6, by torch."""
    S, E_old, E_new = random_rows()
    size, least = 1e-9, 1e-5
    step = match_step(S, E_old, E_new, size, clip=1e12, least=least) - least * np.eye(5) - S
    old, new, variable = (torch.as_tensor(x) for x in (E_old, E_new, S))
    s2 = torch.einsum("ij,jk,ik->i", old, variable, old)
    variable.requires_grad_(True)
    misfit = torch.einsum("ij,jk,ik->i", new, variable, new) - s2.detach()
    (gradient,) = torch.autograd.grad((misfit ** 2).sum(), variable)
    np.testing.assert_allclose(step / -size, gradient, 1e-3, 1e-5 * float(gradient.abs().max()))


def test_a_matching_step_is_clipped_projected_and_bounded():
    S, E_old, E_new = random_rows(1)
    small = match_step(S, E_old, E_new, 1e-3)
    assert np.linalg.norm(small - 1e-5 * np.eye(5) - S) <= 5e-3 + 1e-9
    far = match_step(S, E_old, E_new, 1e3)
    assert np.linalg.eigvalsh(far).min() >= 1e-5 - 1e-9
    assert match_step(S, E_old, E_old, 1.0) == pytest.approx(S + 1e-5 * np.eye(5))


def test_lim2_is_prior_and_buffer():
    agent = LiM2(wide_network(DIM, N_ARMS), N_ARMS, 30, per_arm=4, lam=1.0)
    play(agent, 60)
    contexts, arms, rewards = agent.buffer.arrays()
    E = nlts.last_layer_activations(agent.network, contexts)
    weights = nlts.last_layer_weights(agent.network)
    assert len(arms) == 30 and agent.optimizer.steps == 60 - 4 * N_ARMS + 1
    for i, arm in enumerate(agent.arms):
        own = arms == i
        assert arm.Phi == pytest.approx(E[own].T @ E[own])
        assert np.array_equal(arm.mu0, weights[i])
        assert arm.a == agent.config.a0 + arm.n / 2 and arm.n == agent.chosen[i]
        printed = (agent.R2[i] + arm.mu0 @ arm.Phi0 @ arm.mu0
                   - arm.mu_hat @ arm.precision @ arm.mu_hat) / 2
        assert arm.b == pytest.approx(agent.config.b0 + printed, rel=1e-6)


# NeuralTS -----------------------------------------------------------------------------------------

def gradient(network, context, arm):
    """Of D(b)_arm by all parameters, by torch."""
    D = network(torch.as_tensor(context)[None])[0, arm]
    return np.concatenate([g.numpy().ravel()
                           for g in torch.autograd.grad(D, list(network.parameters()))])


def test_neural_ts_samples_with_the_diagonal_of_its_gradients():
    network = nlts.MLP(DIM, N_ARMS, hidden=8, seed=2)
    agent = NeuralTS(network, N_ARMS, None, lam=1e-3, nu=2.0, L=1000)
    _, seen = play(agent, 25)
    U = 1e-3 + sum(gradient(network, context, arm) ** 2 for context, arm in seen) / 8
    context = np.random.default_rng(9).normal(size=DIM)
    D, sd = agent.estimate(context)
    for i in range(N_ARMS):
        g = gradient(network, context, i)
        assert sd[i] == pytest.approx(2.0 * np.sqrt(1e-3 * (g ** 2 / U).sum() / 8))
    expected = network(torch.as_tensor(context)[None]).detach().numpy()[0]
    assert expected == pytest.approx(D)


def test_neural_ts_trains_every_l_steps_on_all_tuples():
    sizes = []

    def train(network, buffer, config, rng):
        sizes.append(len(buffer.tuples))

    play(NeuralTS(nlts.MLP(DIM, N_ARMS), N_ARMS, None, train=train, L=10), 35)
    assert sizes == [10, 20, 30]


@pytest.mark.parametrize("make", [
    lambda seed: LiM2(wide_network(DIM, N_ARMS, seed), N_ARMS, 300, lam=1.0, seed=seed),
    lambda seed: NeuralTS(nlts.MLP(DIM, N_ARMS, seed=seed), N_ARMS, None, train=fast.train,
                          lam=1e-3, L=50, P=100, seed=seed)], ids=["LiM2", "NeuralTS"])
def test_a_peer_learns(make):
    regrets = [play(make(seed), 400, seed)[0] for seed in range(2)]
    early, late = np.mean([(r[:100].mean(), r[-100:].mean()) for r in regrets], axis=0)
    assert late < 0.5 * early
