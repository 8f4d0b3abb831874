"""Bad input is a ValueError that names the argument, and the agent is as it was."""
import copy

import numpy as np
import pytest
import torch
from test_agent import AGENTS, PRIORS, advance, prior_of, step_of

from tests.oracles import Archive, LinearFeatures, assert_same_state, printed, small_agent, state_of


def agent_state(agent):
    """A copy of all that an agent has learned, drawn and stored."""
    state = [agent.t, agent.chosen, agent.rng.bit_generator.state, list(map(vars, agent.arms))]
    if hasattr(agent, "network"):
        parameters = [p.detach().numpy() for p in agent.network.parameters()]
        state += [agent.network.training, parameters, agent.buffer.tuples]
    return copy.deepcopy(state)


# The posterior and the buffer ---------------------------------------------------------------------

@pytest.mark.parametrize("arguments, name", [
    (([1.0, 2.0, np.nan], 1.0), "phi:"),
    (([1.0, 2.0, 2e4], 1.0), "phi:"),
    (([1.0, 2.0, 3.0], 1e155), "r:"),
    (([[1.0, 2.0, 3.0]], [1.0, 2.0]), "r:"),
    ((np.outer(np.linspace(0.1, 1, 50), [9e3, 3e3, 1e3 / 3]), np.ones(50)),
     "lam: expected a larger one"),                          # rounding takes definiteness
])
def test_bad_input_is_named_and_leaves_the_posterior(nlts, arguments, name):
    blr = nlts.BayesianLinearRegression(1e-14 * np.eye(3), np.zeros(3), 6, 6)
    blr.update([0.9, 0.3, 0.1 / 3], 1.0)
    before = state_of(blr)
    with pytest.raises(ValueError, match=f"^{name}"):
        blr.update(*arguments)
    assert_same_state(before, state_of(blr))


@pytest.mark.parametrize("prior, name", [
    ((np.eye(3), [0, 0], 6, 6), "Phi0"),
    (([[1, 1], [1, 1]], [0, 0], 6, 6), "Phi0"),
    (([[1, 0.5], [0.5001, 1]], [0, 0], 6, 6), "Phi0"),
    ((np.eye(2), [0, np.nan], 6, 6), "mu0"),
    ((np.eye(2), [0, 0], 0, 6), "a0"),
    ((np.eye(2), [0, 0], 6, np.inf), "b0"),
])
def test_a_bad_prior_is_named(nlts, prior, name):
    with pytest.raises(ValueError, match=f"^{name}"):
        nlts.BayesianLinearRegression(*prior)


def test_buffer_names_bad_input(nlts):
    with pytest.raises(ValueError, match="^capacity"):
        nlts.ReplayBuffer(0)
    buffer = nlts.ReplayBuffer(1)
    with pytest.raises(ValueError, match="^buffer.*nothing to learn from"):
        buffer.arrays()
    buffer.add([1.0, 2.0], 0, 1.0)                           # full: bad input must evict nothing
    for arguments, name in ((([1.0], 0, 1.0), "context"), (([3.0, 4.0], -1, 1.0), "arm"),
                            (([3.0, 4.0], 0.5, 1.0), "arm"), (([3.0, 4.0], 0, np.nan), "reward")):
        with pytest.raises(ValueError, match=f"^{name}"):
            buffer.add(*arguments)
    assert [(context.tolist(), arm, r) for context, arm, r in buffer.tuples] == [([1.0, 2.0], 0, 1)]


# Contexts, arms and rewards -----------------------------------------------------------------------

GOOD = [1, 2, 3, 4]
BAD_CONTEXTS = [[1, 2, 3, np.nan], [1, 2, 3], [GOOD], [1, 2, 3, [4]], ["1", "2", "3", "4"],
                [1, 2, 3, 1.7e9]]                            # a timestamp
BAD_STEPS = [((context, 0, 1.0), "context") for context in BAD_CONTEXTS]
BAD_STEPS += [((GOOD, arm, 1.0), "arm") for arm in (None, 3, -1, 0.5)]
BAD_STEPS += [((GOOD, 0, reward), "reward") for reward in (None, np.nan, [1.0, 2.0], 1e155)]


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("steps", [0, 39])                   # 39: the next one would learn
def test_agents_name_bad_input_and_stay_as_they_were(nlts, kind, steps):
    agent = AGENTS[kind](nlts)
    advance(agent, steps)
    before = agent_state(agent)
    for context in BAD_CONTEXTS:
        for call in (agent.act, agent.scores):
            with pytest.raises(ValueError, match=r"^context\b"):
                call(context)
    for arguments, name in BAD_STEPS:
        with pytest.raises(ValueError, match=rf"^{name}\b"):
            agent.update(*arguments)
    np.testing.assert_equal(agent_state(agent), before)
    advance(agent, 3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", AGENTS)
def test_tensors_count_as_their_values(nlts, kind):
    agent, other = AGENTS[kind](nlts), AGENTS[kind](nlts)
    tensor = torch.tensor([1.0, 2.0, 3.0, 4.0])
    agent.update(tensor, 0, tensor[0])
    other.update([1.0, 2.0, 3.0, 4.0], 0, 1.0)
    np.testing.assert_equal(agent_state(agent), agent_state(other))


# Settings -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, value", [
    ("lam", "a"), ("lam", 0.0), ("a0", -1), ("b0", np.nan), ("lr", np.inf),
    ("L", 0), ("L", 40.5), ("P", -1), ("batch", 0), ("initial_pulls", -1),
])
def test_hyperparameters_are_checked_and_named(nlts, name, value):
    for make in (lambda **options: nlts.LinearTS(2, 2, **options),
                 lambda **options: small_agent(nlts, **options)):
        with pytest.raises(ValueError, match=f"^{name}:"):
            make(**{name: value})


def test_other_settings_are_named_too(nlts):
    def neural(n_arms=3, memory=9, **options):
        return nlts.NeuralLinearTS(nlts.MLP(4, 3, 6), n_arms, memory, **options)

    for call, name in (
            (lambda: nlts.LinearTS(2, 0), "n_arms"),
            (lambda: nlts.LinearTS("a", 2), "dim"),
            (lambda: nlts.LinearTS(2, 2, v=-1.0), "v"),
            (lambda: nlts.LinearTS(2, 2, noise="paper"), "noise"),
            (lambda: nlts.LinearTS(2, 2, v=1.0, noise=lambda *_: [1, 1]), "v, noise"),
            (lambda: nlts.MLP(2, 2, hidden=0), "hidden"),
            (lambda: neural(n_arms=0), "n_arms"),
            (lambda: neural(prior="paper"), "prior"),
            (lambda: neural(train=None), "train"),
            (lambda: neural(memory=2), "memory"),            # fewer than arms
            (lambda: neural(memory=None, prior=nlts.no_prior), "prior: .* memory=None"),
            (lambda: nlts.EpsilonGreedy(nlts.MLP(4, 3), 3, 9, "a"), "epsilon"),
            (lambda: nlts.EpsilonGreedy(nlts.MLP(4, 3), 3, 9, 1.5), "epsilon")):
        with pytest.raises(ValueError, match=f"^{name}"):
            call()
    with pytest.raises(TypeError, match="memory"):           # a reader decides
        nlts.NeuralLinearTS(nlts.MLP(4, 3, 6), 3)


@pytest.mark.parametrize("nu2", [[1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]])
def test_a_noise_that_is_no_variance_per_arm_is_refused(nlts, nu2):
    agent = nlts.LinearTS(2, 3, noise=lambda arms, config, rng: nu2, initial_pulls=0)
    with pytest.raises(ValueError, match="^nu2: expected|^zip"):
        agent.act([1.0, 2.0])
    assert not agent.chosen.any()
    assert not agent.arms[0].sample(0.0, agent.rng).any()    # none is a variance, too


# Networks -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("make", [
    lambda nlts: nlts.MLP, lambda nlts: torch.nn.Flatten(), lambda nlts: nlts.MLP(4, 2),
])
def test_a_network_that_cannot_be_used_is_refused_when_the_agent_is_made(nlts, make):
    with pytest.raises(ValueError, match="^network: expected"):
        nlts.NeuralLinearTS(make(nlts), 3, 18)


class WithOutputs(LinearFeatures):
    """Its forward is a function of features times weights."""

    def __init__(self, function):
        super().__init__(np.eye(4), 3)
        self.function = function

    def forward(self, x):
        return self.function(super().forward(x))


def with_bias(D):
    return D + 0.1


@pytest.mark.parametrize("function", [with_bias, lambda D: D[:, :2]])
def test_a_network_must_be_features_times_weights(nlts, function):
    """Seen when it learns; nothing has changed then."""
    agent = small_agent(nlts, network=WithOutputs(function))
    advance(agent, 39)
    before = agent_state(agent)
    with pytest.raises(ValueError, match="^network: expected forward"):
        agent.learn()
    np.testing.assert_equal(agent_state(agent), before)


def test_a_network_of_single_precision_may_have_large_contexts(nlts):
    """Rounding of features times weights is no bias, however large the features."""
    agent = small_agent(nlts, network=nlts.MLP(4, 3, 6).float(), L=10 ** 6, P=1)
    for context in 300 * np.random.default_rng(0).normal(size=(50, 4)):
        agent.update(context, 0, 1.0)
        agent.learn()


# A phase that fails -------------------------------------------------------------------------------

class Failure(Exception):
    pass


def train_breaks(network, buffer, config, rng):
    """Fails after it has changed the network and drawn numbers."""
    rng.random(5)
    network.train()
    with torch.no_grad():
        network.weights += 1
    raise Failure("train")


def train_diverges(network, buffer, config, rng):
    with torch.no_grad():
        network.input *= 1e9


def prior_breaks(forgotten, E_old, E_new, weights, lam):
    """Fails after it has spoiled all that it was given."""
    for array in (*E_old, *E_new, weights):
        array[:] = np.nan
    raise Failure("prior")


@pytest.mark.parametrize("options, error", [
    ({"train": train_breaks}, "train"),
    ({"train": train_diverges}, "^context.* diverged.* scale"),
    ({"prior": prior_breaks}, "prior"),
    ({"prior": lambda *_: [(-np.eye(6), np.zeros(6))] * 3}, "^Phi0:"),
    ({"prior": lambda *_: [(np.eye(6), np.zeros(6))]}, "zip"),
])
def test_a_phase_that_fails_leaves_the_agent_as_it_was(nlts, options, error):
    """The last tuple counts; network, posteriors and generator are as before the phase."""
    agent, same = small_agent(nlts, **options), small_agent(nlts, L=10 ** 6, **options)
    network = agent.network
    advance(agent, 39)
    advance(same, 40)
    with pytest.raises((ValueError, Failure), match=error):
        advance(agent, 1)                                    # its update reaches t mod L = 0
    np.testing.assert_equal(agent_state(agent), agent_state(same))
    assert agent.network is network and agent.t == 40


# Hard input ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("scales", [[1e3] * 4, [1e-4] * 4, [1, 1e-3, 1e3, 10]])
def test_learning_survives_contexts_of_many_scales(nlts, scales, prior):
    agent = nlts.NeuralLinearTS(nlts.MLP(4, 3, 20), 3, 60, prior_of(nlts, prior), L=100, P=5)
    for _ in range(200):
        context, rewards = step_of(agent)
        arm = agent.act(context * scales)
        agent.update(context * scales, arm, rewards[arm])
    for arm in agent.arms:
        assert np.isfinite(arm.mu_hat).all() and arm.b > 5.9


@pytest.mark.parametrize("memory, prior", [(None, "likelihood_matching"), (18, "carried_prior")])
@pytest.mark.parametrize("scale", [1e-9, 1e9, 1e30])
def test_learning_survives_rewards_of_many_scales(nlts, scale, memory, prior):
    """A b of 1e18 less another one is not exactly the 6 that is left, but it stays positive."""
    agent = small_agent(nlts, memory=memory, prior=prior_of(nlts, prior), P=2, L=20)
    archive = Archive(nlts, agent)
    archive.advance(70, scale=scale)
    for i, arm in enumerate(agent.arms):
        assert np.isfinite(arm.mu_hat).all() and 0 < arm.b < np.inf
        if memory is None:
            expected = printed(*archive.rows(i), 0.25 * np.eye(6), np.zeros(6))
            assert arm.b == pytest.approx(expected[3], rel=1e-6)
