"""Bad input is a ValueError that names the argument, and the agent is as it was."""
import copy

import numpy as np
import pytest
import torch
from test_agent import AGENTS, advance, greedy_agent, small_agent

from test_nlts import LinearFeatures, assert_same_state, state_of

TIMESTAMP = 1.7e9


def agent_state(agent):
    """A copy of all that an agent has learned, drawn and stored."""
    state = {"t": agent.t, "rng": str(agent.rng.bit_generator.state)}
    for i, arm in enumerate(agent.arms):
        state |= {f"arm {i} {name}": value for name, value in state_of(arm).items()}
    if hasattr(agent, "network"):
        state["training"] = agent.network.training
        for name, value in agent.network.state_dict().items():
            state[f"network {name}"] = value.numpy().copy()
        for j, (context, arm, reward) in enumerate(agent.buffer.tuples):
            state[f"tuple {j}"] = np.array([*context, arm, reward])
    return state


# The posterior and the buffer ---------------------------------------------------------------------

@pytest.mark.parametrize("method, arguments, name", [
    ("update", ([1.0, np.nan], 1.0), "phi"),
    ("update", ([1.0], 1.0), "phi"),
    ("update", ([1.0, 2e4], 1.0), "phi"),
    ("update", ("ab", 1.0), "phi"),
    ("update", ([1.0, 2.0], np.inf), "r"),
    ("update", ([1.0, 2.0], 1e155), "r"),
    ("update", ([[1.0, 2.0]], [1.0, 2.0]), "r"),
    ("predict", ([1.0, np.inf],), "phi"),
])
def test_bad_input_is_named_and_leaves_the_posterior(nlts, method, arguments, name):
    blr = nlts.BayesianLinearRegression(np.eye(2), [0, 0], 6, 6)
    blr.update([1.0, 2.0], 1.0)
    before = state_of(blr)
    with pytest.raises(ValueError, match=f"^{name}:"):
        getattr(blr, method)(*arguments)
    assert_same_state(before, state_of(blr))


@pytest.mark.parametrize("prior, name", [
    ((-np.eye(2), [0, 0], 6, 6), "Phi0"),
    ((np.eye(3), [0, 0], 6, 6), "Phi0"),
    (([[1, 2], [0, 5]], [0, 0], 6, 6), "Phi0"),
    (([[1, 1], [1, 1]], [0, 0], 6, 6), "Phi0"),
    ((np.eye(2), [0, np.nan], 6, 6), "mu0"),
    ((np.eye(2), [0, 0], 0, 6), "a0"),
    ((np.eye(2), [0, 0], 6, 0), ".*b0"),
    ((np.eye(2), [0, 0], 6, np.inf), ".*b0"),
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
    for context in ([1.0], [1.0, np.nan], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="^context"):
            buffer.add(context, 0, 1.0)
    for arm in (-1, 0.5, "a"):
        with pytest.raises(ValueError, match="^arm"):
            buffer.add([3.0, 4.0], arm, 1.0)
    for reward in ("x", np.nan, [1.0, 2.0]):
        with pytest.raises(ValueError, match="^reward"):
            buffer.add([3.0, 4.0], 0, reward)
    assert [(context.tolist(), arm, r) for context, arm, r in buffer.tuples] == [([1.0, 2.0], 0, 1)]


# Contexts, arms and rewards -----------------------------------------------------------------------

BAD_STEPS = [
    (([1, 2, 3, np.nan], 0, 1.0), "context"),
    (([1, 2, 3, np.inf], 0, 1.0), "context"),
    (([1, 2, 3], 0, 1.0), "context"),
    (([[1, 2, 3, 4]], 0, 1.0), "context"),
    (("abcd", 0, 1.0), "context"),
    (([1, 2, 3, [4]], 0, 1.0), "context"),
    (([1, 2, 3, 10 ** 400], 0, 1.0), "context"),
    (([1, 2, 3, TIMESTAMP], 0, 1.0), "context"),
    (([1, 2, 3, 4], 3, 1.0), "arm"),
    (([1, 2, 3, 4], -1, 1.0), "arm"),
    (([1, 2, 3, 4], 0.5, 1.0), "arm"),
    (([1, 2, 3, 4], 0, np.nan), "reward"),
    (([1, 2, 3, 4], 0, "x"), "reward"),
    (([1, 2, 3, 4], 0, [1.0, 2.0]), "reward"),
    (([1, 2, 3, 4], 0, 1e155), "reward"),
]


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("steps", [0, 12])
def test_agents_name_bad_input_and_stay_as_they_were(nlts, kind, steps):
    agent = AGENTS[kind](nlts)
    advance(agent, steps)
    before = agent_state(agent)
    for arguments, name in BAD_STEPS:
        if name == "context":
            with pytest.raises(ValueError, match=r"^context\b"):
                agent.act(arguments[0])
        with pytest.raises(ValueError, match=rf"^{name}\b"):
            agent.update(*arguments)
        assert_same_state(before, agent_state(agent))


@pytest.mark.parametrize("kind", AGENTS)
def test_a_timestamp_is_refused_at_the_door_with_advice(nlts, kind):
    agent = AGENTS[kind](nlts)
    advance(agent, 39)
    before = agent_state(agent)
    for call in (agent.act, lambda context: agent.update(context, 0, 1.0)):
        with pytest.raises(ValueError, match="^context.* scale"):
            call([1, 2, 3, TIMESTAMP])
    assert_same_state(before, agent_state(agent))
    advance(agent, 3)                                        # over a learning phase


def test_text_cnn_names_ids_that_are_not_words(nlts):
    network = nlts.TextCNN(20, 2, size=4, widths=(2, 3), hidden=5)
    agent = nlts.NeuralLinearTS(network, 2, memory=10)
    for bad in (20, -1, TIMESTAMP):
        with pytest.raises(ValueError, match="^context: "):
            agent.act([1, 2, 3, bad])


# Settings -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("options, name", [
    ({"lam": "a"}, "lam"),
    ({"lam": 0.0}, "lam"),
    ({"lam": None}, "lam"),
    ({"a0": -1}, "a0"),
    ({"b0": 0}, "b0"),
    ({"lr": np.nan}, "lr"),
    ({"lr": np.inf}, "lr"),
    ({"L": 0}, "L"),
    ({"L": 40.5}, "L"),
    ({"P": -1}, "P"),
    ({"batch": 0}, "batch"),
    ({"initial_pulls": -1}, "initial_pulls"),
])
def test_hyperparameters_are_checked_and_named(nlts, options, name):
    network = nlts.MLP(4, 3, 6)
    calls = [lambda: nlts.Config(**options), lambda: nlts.NeuralLinearTS(network, 3, **options)]
    for call in calls:
        with pytest.raises(ValueError, match=f"^{name}:"):
            call()


@pytest.mark.parametrize("memory", [2, 0, 18.5, "all"])
def test_memory_is_checked_and_named(nlts, memory):
    with pytest.raises(ValueError, match="^memory:"):
        nlts.NeuralLinearTS(nlts.MLP(4, 3, 6), 3, memory)


def test_full_memory_asks_no_prior(nlts):
    nlts.NeuralLinearTS(nlts.MLP(4, 3, 6), 3)
    with pytest.raises(ValueError, match="^prior.*memory=None"):
        nlts.NeuralLinearTS(nlts.MLP(4, 3, 6), 3, prior=nlts.no_prior)


def test_other_settings_are_named_too(nlts):
    network = nlts.MLP(4, 3, 6)
    for call, name in (
            (lambda: nlts.LinearTS(2, 0), "n_arms"),
            (lambda: nlts.LinearTS(0, 2), "dim"),
            (lambda: nlts.LinearTS("a", 2), "dim"),
            (lambda: nlts.LinearTS(2, 2, v=-1.0), "v"),
            (lambda: nlts.LinearTS(2, 2, v="a"), "v"),
            (lambda: nlts.LinearTS(2, 2, b0=0), "b0"),
            (lambda: nlts.NeuralLinearTS(network, 0), "n_arms"),
            (lambda: nlts.NeuralLinearTS(network, 3, 9, prior="paper"), "prior, train"),
            (lambda: nlts.NeuralLinearTS(network, 3, 9, train=None), "prior, train"),
            (lambda: nlts.EpsilonGreedy(network, 3, epsilon="a"), "epsilon"),
            (lambda: nlts.EpsilonGreedy(network, 3, epsilon=1.5), "epsilon")):
        with pytest.raises(ValueError, match=f"^{name}:"):
            call()


@pytest.mark.parametrize("kind", ["full", "limited", "greedy"])
def test_there_is_nothing_to_learn_from_before_any_data(nlts, kind):
    with pytest.raises(ValueError, match="nothing to learn from"):
        AGENTS[kind](nlts).learn()


# Networks -----------------------------------------------------------------------------------------

class LastIsFirst(LinearFeatures):
    """The last layer is registered before a linear layer that makes the features."""

    def __init__(self):
        super().__init__(np.eye(4), 3)
        self.hidden = torch.nn.Linear(4, 4, bias=False, dtype=torch.float64)

    def features(self, x):
        return torch.relu(self.hidden(x))


class Elsewhere(LinearFeatures):
    """Its `weights` are not what forward uses."""

    def __init__(self):
        super().__init__(np.eye(4), 3)
        self.weights = torch.nn.Parameter(torch.ones(3, 4, dtype=torch.float64))


class OtherSize(LinearFeatures):
    """The last linear layer that is registered is never used, and has another size."""

    def __init__(self):
        super().__init__(np.eye(4), 3)
        self.unused = torch.nn.Linear(7, 3, dtype=torch.float64)


class NoFeatures(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.ones(3, 4, dtype=torch.float64))

    def forward(self, x):
        return x @ self.weights.T


def sequential():
    double = {"dtype": torch.float64}
    return torch.nn.Sequential(torch.nn.Linear(4, 6, **double), torch.nn.ReLU(),
                               torch.nn.Linear(6, 3, **double))


@pytest.mark.parametrize("network, expected", [
    (sequential(), "features"),
    (NoFeatures(), "features"),
    (torch.nn.Sequential(torch.nn.ReLU()), ""),
    (LinearFeatures(np.eye(4), 3, bias=True), "bias"),
    (LastIsFirst(), "weights"),
    (Elsewhere(), "weights"),
    (OtherSize(), "weights"),
    (LinearFeatures(np.eye(4), 4), "weights"),
])
def test_a_network_must_be_features_times_weights(network, expected, nlts):
    """Told at the latest at the first context."""
    with pytest.raises(ValueError, match=f"^network: .*{expected}"):
        nlts.NeuralLinearTS(network, 3, memory=18).act([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match=f"^network: .*{expected}"):
        nlts.NeuralLinearTS(network, 3, memory=18).update([1.0, 2.0, 3.0, 4.0], 0, 1.0)


def test_a_bias_that_is_trained_away_from_zero_is_told_after_the_phase(nlts):
    network = LinearFeatures(np.eye(4), 3, bias=True)
    torch.nn.init.zeros_(network.last.bias)
    agent = small_agent(nlts, network=network)
    advance(agent, 40)
    for call in (agent.act, lambda context: agent.update(context, 0, 1.0)):
        with pytest.raises(ValueError, match="^network: .*bias"):
            call([1.0, 2.0, 3.0, 4.0])


def test_a_network_of_single_precision_may_have_large_contexts(nlts):
    """Rounding of features times weights is no bias, however large the features."""
    rng = np.random.default_rng(0)
    agent = small_agent(nlts, network=nlts.MLP(4, 3, 6).float())
    for context in 300 * rng.normal(size=(3000, 4)):
        agent.phi(context)


# A phase that fails -------------------------------------------------------------------------------

class Interrupted(Exception):
    pass


def train_breaks(network, buffer, config, rng):
    """Fails after it has changed the network and drawn numbers."""
    rng.random(5)
    network.train()
    with torch.no_grad():
        network.weights += 1
    raise Interrupted("train")


def train_explodes(network, buffer, config, rng):
    with torch.no_grad():
        network.input *= 1e9


def prior_breaks(forgotten, E_old, E_new, weights, lam):
    """Fails after it has spoiled all that it was given."""
    for array in (*E_old, *E_new, weights):
        array[:] = np.nan
    raise Interrupted("prior")


def prior_is_short(forgotten, E_old, E_new, weights, lam):
    return [(np.eye(6), np.zeros(6))]


def prior_is_no_precision(forgotten, E_old, E_new, weights, lam):
    return [(np.eye(6), np.zeros(6)), (-np.eye(6), np.zeros(6)), (np.eye(6), np.zeros(6))]


@pytest.mark.parametrize("options, error", [
    ({"train": train_breaks}, "train"),
    ({"prior": prior_breaks}, "prior"),
    ({"train": train_explodes}, "^context.* scale"),
    ({"train": train_explodes, "memory": None}, "^context.* scale"),
    ({"prior": prior_is_no_precision}, "^Phi0:"),
    ({"prior": prior_is_short}, "^prior:"),
])
def test_a_phase_that_fails_leaves_the_agent_as_it_was(nlts, options, error):
    agent = small_agent(nlts, **options)
    advance(agent, 39)
    network, before = agent.network, agent_state(agent)
    with pytest.raises((ValueError, Interrupted), match=error):
        agent.learn()
    assert_same_state(before, agent_state(agent))
    assert agent.network is network
    same = small_agent(nlts, L=10 ** 6, **options)
    advance(same, 40)
    with pytest.raises((ValueError, Interrupted), match=error):
        advance(agent, 1)                                    # its update reaches t mod L = 0
    assert_same_state(agent_state(same), agent_state(agent))


def test_a_phase_of_epsilon_greedy_that_fails_leaves_it_as_it_was(nlts):
    agent = greedy_agent(nlts, train=train_breaks)
    advance(agent, 39)
    before = agent_state(agent)
    with pytest.raises(Interrupted):
        agent.learn()
    assert_same_state(before, agent_state(agent))


def test_an_agent_goes_on_after_a_failure(nlts):
    """The next phase gives what it would have given without the one that failed."""
    fails = iter([True, False])

    def train(network, buffer, config, rng):
        nlts.train(network, buffer, config, rng)
        if next(fails):
            raise Interrupted("once")

    agent, other = small_agent(nlts, train=train, L=10 ** 6), small_agent(nlts, L=10 ** 6)
    for each in (agent, other):
        advance(each, 50)
    with pytest.raises(Interrupted):
        agent.learn()
    agent.learn()
    other.learn()
    assert_same_state(agent_state(other), agent_state(agent))


def test_a_posterior_that_cannot_be_factored_stays_as_it_was(nlts):
    """A prior so weak that rounding takes the precision's definiteness: an error, nothing half."""
    blr = nlts.BayesianLinearRegression(1e-12 * np.eye(3), np.zeros(3), 6, 6)
    rows = np.array([[9e3, 3e3, 1e3 / 3]]) * np.linspace(0.1, 1, 50)[:, None]
    before = state_of(blr)
    try:
        blr.update(rows, np.ones(50))
    except (ValueError, np.linalg.LinAlgError):
        assert_same_state(before, state_of(blr))
    else:
        assert np.isfinite(blr.mu_hat).all()


def test_a_copy_of_an_agent_is_an_agent_of_its_own(nlts):
    agent = small_agent(nlts)
    advance(agent, 30)
    other = copy.deepcopy(agent)
    before = agent_state(agent)
    advance(other, 30)
    assert_same_state(before, agent_state(agent))
    advance(agent, 30)
    assert_same_state(agent_state(other), agent_state(agent))
