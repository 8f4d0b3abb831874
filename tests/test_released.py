"""The released program's agent: each peculiarity is what its list says."""
import copy

import numpy as np
import pytest
import torch
from made_files import aps

import datasets
import nlts
from lab.options import Options
from lab.results import make_runs
from studies import released
from studies.released_agents import Biased, Released, RMSProp, mislabelled, smallest_above_tiny

DIM, N_ARMS = 6, 3
PRIORS = {"neural-linear": None} | released.PRIORS


def make(method, **more):
    """A small agent, with a phase every 25 steps."""
    memory = None if method == "neural-linear" else 24
    prior = {"prior": PRIORS[method]} if PRIORS[method] else {}
    return Released(Biased(DIM, N_ARMS, seed=3), N_ARMS, memory, seed=5,
                    **{"L": 25, "P": 12, "batch": 16} | prior | more)


def played(method, steps, **more):
    """An agent after some steps; the arm played last, and what was sampled from before."""
    agent, rng = make(method, **more), np.random.default_rng(2)
    for _ in range(steps):
        context = rng.normal(size=DIM)
        arm, before = agent.act(context), copy.deepcopy(agent.shown)
        agent.update(context, arm, float(context[arm] + 0.1 * rng.normal()))
    return agent, arm, before


def test_first_weights_are_within_0_3_and_lam_is_1_with_limited_memory():
    """[1] and [3]."""
    for dim in (2, 500):
        assert 0.25 < Biased(dim, N_ARMS).input.abs().max() <= 0.3
    assert [make(method).config.lam for method in PRIORS] == [0.25, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("network", [nlts.MLP, Biased])
def test_rmsprop_against_torch(network):
    """[2]: torch's, gradients too; step sizes never restarted, clipping, and squares from 1 on."""
    rng, buffer, config = np.random.default_rng(3), nlts.ReplayBuffer(None), nlts.Config(P=12)
    for t, context in enumerate(rng.normal(size=(60, DIM))):
        buffer.add(context, t % N_ARMS, 10.0 * (t % 3))      # large: gradients are clipped
    ours, theirs = (network(DIM, N_ARMS, seed=1) for _ in range(2))
    train, rng = RMSProp(), np.random.default_rng(0)
    train(ours, buffer, config, rng)
    train(ours, buffer, config, rng)
    rng = np.random.default_rng(0)
    optimizer = torch.optim.RMSprop(theirs.parameters(), lr=0.1, alpha=0.9, eps=1e-10)
    for p in theirs.parameters():
        optimizer.state[p] = {"step": torch.tensor(0.0), "square_avg": torch.ones_like(p)}
    contexts, arms, rewards = map(torch.as_tensor, buffer.arrays())
    clipped = 0
    for step in range(24):
        rows = torch.as_tensor(rng.integers(60, size=config.batch))
        optimizer.zero_grad()
        D = theirs(contexts[rows])[torch.arange(config.batch), arms[rows]]
        ((D - rewards[rows]) ** 2).mean().backward()
        clipped += float(torch.nn.utils.clip_grad_norm_(theirs.parameters(), 5)) > 5
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step / 2)
        optimizer.step()
    assert clipped > 3
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-8)


def test_forgotten_rewards_are_booked_as_noise():
    """[4]: b is the printed formula with R² of all tuples."""
    agent, _, _ = played("both-priors", 75)
    for i, arm in enumerate(agent.arms):
        printed = (agent.R2[i] + arm.mu0 @ arm.Phi0 @ arm.mu0
                   - arm.mu_hat @ arm.precision @ arm.mu_hat) / 2
        assert arm.b == pytest.approx(agent.config.b0 + printed)


def test_the_whole_posterior_is_matched_under_the_new_features():
    """[5] and [6]; [11]: the smallest S, plus 1e-5 I."""
    agent, _, _ = played("both-priors", 24)
    matched = []
    agent.match = lambda E, s2: matched.append((E, s2)) or smallest_above_tiny(E, s2)
    context = np.ones(DIM)
    before = copy.deepcopy(agent.shown)               # without the tuple that triggers the phase
    agent.update(context, 0, 1.0)
    contexts, arms, _ = agent.buffer.arrays()
    for i, (E, s2) in enumerate(matched):
        new = nlts.last_layer_activations(agent.network, contexts[arms == i])
        np.testing.assert_allclose(E, new)
        expected = np.einsum("ij,jk,ik->i", new, np.linalg.inv(before[i].precision), new)
        np.testing.assert_allclose(s2, expected, rtol=1e-6)
    E = np.random.default_rng(0).normal(size=(8, 20))
    assert 1e-5 <= np.linalg.eigvalsh(smallest_above_tiny(E, np.ones(8))).min() <= 2e-5


@pytest.mark.parametrize("method", PRIORS)
def test_stale_arms_show_what_they_were(method):
    """[7]; what is shown is sampled from."""
    agent, arm, before = played(method, 75)
    for i, (now, new) in enumerate(zip(agent.shown, agent.arms, strict=True)):
        if i != arm:
            assert np.array_equal(now.mu_hat, before[i].mu_hat) and now.b == before[i].b
            expected = new.Phi0 if method == "both-priors" else before[i].precision
            np.testing.assert_allclose(now.precision, expected)
        elif method == "neural-linear":
            assert now is new
        else:
            mean = np.linalg.solve(now.precision, new.Phi0 @ new.mu0 + new.f)
            np.testing.assert_allclose(now.mu_hat, mean)
    agent.update(np.ones(DIM), arm, 1.0)
    assert agent.shown[arm] is agent.arms[arm]
    phi = agent.phi(np.ones(DIM))
    agent.shown = [nlts.BayesianLinearRegression(1e9 * np.eye(len(phi)), (i == 2) * phi, 6, 6, 5)
                   for i in range(N_ARMS)]
    assert agent.act(np.ones(DIM)) == 2


def test_without_matching_the_first_phase_s_precision_stays():
    """[8]: what had been learned one step before the first phase."""
    first, later = played("no-prior", 24)[0], played("no-prior", 75)[0]
    for before, arm in zip(first.shown, later.arms, strict=True):
        np.testing.assert_allclose(arm.Phi0, before.precision)
        assert not arm.mu0.any()


@pytest.mark.parametrize("constant", [False, True])
def test_the_output_bias_overwrites_or_belongs_to_the_constant(constant):
    """[9]."""
    agent, _, _ = played("mu-prior", 60, constant=constant)
    bias = agent.network.output_bias.detach().numpy()
    weights = nlts.last_layer_weights(agent.network)
    assert (bias != 0).all()
    for i, arm in enumerate(agent.arms):
        assert arm.mu0.tolist() == [*weights[i][:None if constant else -1], bias[i]]
    if constant:
        D = agent.network(torch.ones(1, DIM, dtype=torch.float64)).detach().numpy()
        np.testing.assert_allclose(agent.features(np.ones((1, DIM))) @ agent.last_layer().T, D)


def test_an_arm_without_tuples_is_certain():
    """[10]."""
    agent, rng = make("both-priors"), np.random.default_rng(0)
    for _ in range(25):
        agent.update(rng.normal(size=DIM), int(rng.integers(2)), rng.normal())
    np.testing.assert_allclose(agent.arms[2].Phi0, 1e5 * np.eye(50))


def test_scania_s_labels_are_in_the_order_of_the_file(folder):
    """[12]."""
    (folder / "aps_failure_training_set.csv").write_bytes(aps(40))
    options = Options("released", runs=1, steps=30)
    (task,) = make_runs(options, "scania", "no-prior", released.released("no-prior", "scania"))
    problem, right = mislabelled(task), datasets.load("scania", 40)
    assert task.recipe.problem is mislabelled
    assert problem.rewards.argmax(1).tolist() == [int(i % 3 == 0) for i in range(30)]
    first = problem.contexts[:, 0]                    # grows with the number of a row
    assert (np.diff(first) < 0).any() and len(set(first)) == 30 and right.dim == problem.dim
