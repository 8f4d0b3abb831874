"""Bad input is a ValueError that names the argument, and the agent is as it was."""
import copy
import sys
import warnings

import numpy as np
import pytest
import torch
from test_agent import AGENTS, advance, greedy_agent, small_agent, step_of

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
    ((None, 0, 1.0), "context"),
    (([1, 2, 3, None], 0, 1.0), "context"),
    ((["1", "2", "3", "4"], 0, 1.0), "context"),
    ((np.array(["2026-01-01"] * 4, dtype="datetime64[D]"), 0, 1.0), "context"),
    ((np.ma.masked_array([1.0, 2, 3, 4], mask=[0, 0, 0, 1]), 0, 1.0), "context"),
    ((np.array([1, 2, 3, 4j]), 0, 1.0), "context"),
    (([1, 2, 3, 4], None, 1.0), "arm"),
    (([1, 2, 3, 4], 0, None), "reward"),
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


def test_what_is_not_a_number_is_not_told_to_be_scaled(nlts):
    agent = AGENTS["linear"](nlts)
    for bad in ([1, 2, 3, np.nan], [1, 2, 3, None], None):
        with pytest.raises(ValueError, match="^context: expected (finite )?numbers, got") as caught:
            agent.act(bad)
        assert "scale" not in str(caught.value)


@pytest.mark.parametrize("kind", AGENTS)
def test_tensors_with_gradients_count_as_their_values(nlts, kind):
    agent, other = AGENTS[kind](nlts), AGENTS[kind](nlts)
    tensor = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert agent.act(tensor) == agent.act(list(tensor)) == 0
        agent.update(tensor, 0, tensor[0])
    other.update([1.0, 2.0, 3.0, 4.0], 0, 1.0)
    assert_same_state(agent_state(other), agent_state(agent))


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
            (lambda: nlts.LinearTS(2, 2, noise="paper"), "noise"),
            (lambda: nlts.LinearTS(2, 2, v=1.0, noise=lambda *_: [1, 1]), "v, noise"),
            (lambda: nlts.NeuralLinearTS(network, 3, 9, noise=None), "noise"),
            (lambda: nlts.MLP(0, 2), "dim"),
            (lambda: nlts.MLP(2, 0), "n_arms"),
            (lambda: nlts.MLP(2, 2, hidden=0), "hidden"),
            (lambda: nlts.NeuralLinearTS(network, 0), "n_arms"),
            (lambda: nlts.NeuralLinearTS(network, 3, 9, prior="paper"), "prior, train"),
            (lambda: nlts.NeuralLinearTS(network, 3, 9, train=None), "prior, train"),
            (lambda: nlts.EpsilonGreedy(network, 3, epsilon="a"), "epsilon"),
            (lambda: nlts.EpsilonGreedy(network, 3, epsilon=1.5), "epsilon")):
        with pytest.raises(ValueError, match=f"^{name}:"):
            call()


@pytest.mark.parametrize("nu2", [None, [1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0], "abc"])
def test_a_noise_that_is_no_variance_per_arm_is_named(nlts, nu2):
    agent = nlts.LinearTS(2, 3, noise=lambda arms, config, rng: nu2, initial_pulls=0)
    with pytest.raises(ValueError, match="^noise: expected"):
        agent.act([1.0, 2.0])


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


class TwoOutputs(LinearFeatures):
    def forward(self, x):
        return super().forward(x), x


class TwoFeatures(LinearFeatures):
    def features(self, x):
        return super().features(x), x


def frozen():
    return LinearFeatures(np.eye(4), 3).requires_grad_(False)


@pytest.mark.parametrize("make", [
    lambda nlts: None, lambda nlts: nlts.MLP, lambda nlts: "MLP", lambda nlts: frozen(),
    lambda nlts: nlts.MLP(4, 3).half(), lambda nlts: nlts.MLP(4, 3).bfloat16(),
    lambda nlts: nlts.MLP(4, 3).to("meta"), lambda nlts: nlts.MLP(4, 2),
    lambda nlts: torch.nn.Flatten(),
])
def test_a_network_that_cannot_be_used_is_refused_when_the_agent_is_made(nlts, make):
    with pytest.raises(ValueError, match="^network: expected"):
        nlts.NeuralLinearTS(make(nlts), 3, memory=18)


@pytest.mark.parametrize("kind", [TwoOutputs, TwoFeatures])
def test_a_network_with_two_outputs_is_refused_at_the_first_context(nlts, kind):
    agent = nlts.NeuralLinearTS(kind(np.eye(4), 3), 3, memory=18)
    for call in (agent.act, lambda context: agent.update(context, 0, 1.0)):
        with pytest.raises(ValueError, match="^network: expected .* tensor"):
            call([1.0, 2.0, 3.0, 4.0])


class Viewing(LinearFeatures):
    """A user's network that cannot tell the length of nothing."""

    def features(self, x):
        return x.view(x.shape[0], -1, 2).reshape(-1, 4) @ self.A.T


def test_an_arm_without_tuples_feeds_the_network_no_empty_batch(nlts):
    agent = small_agent(nlts, network=Viewing(np.eye(4), 3), initial_pulls=0, P=2)
    for t in range(45):
        agent.update(np.full(4, t % 5 + 1.0), 1, 1.0)
    assert [arm.n for arm in agent.arms] == [0, 45, 0]


def test_learning_works_where_gradients_are_off(nlts):
    agent, other = small_agent(nlts), small_agent(nlts)
    with torch.no_grad():
        advance(agent, 45)
    advance(other, 45)
    assert_same_state(agent_state(other), agent_state(agent))


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


def prior_of_wrong_shapes(forgotten, E_old, E_new, weights, lam):
    return [(np.eye(5), np.zeros(5))] * 3


def prior_is_a_generator(forgotten, E_old, E_new, weights, lam):
    return ((np.eye(6), np.zeros(6)) for _ in range(3))


@pytest.mark.parametrize("options, error", [
    ({"prior": lambda *_: None}, "^prior: expected a list of 3 pairs"),
    ({"prior": prior_is_a_generator}, "^prior: expected a list of 3 pairs"),
    ({"prior": prior_of_wrong_shapes}, "^prior: expected Phi0 of shape"),
    ({"prior": lambda *_: [None] * 3}, "^prior: expected Phi0 of shape"),
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
    with pytest.raises((ValueError, Interrupted), match=error) as caught:
        advance(agent, 1)                                    # its update reaches t mod L = 0
    assert "agent.learn() makes up for" in caught.value.__notes__[-1]
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


def test_a_nearly_singular_precision_names_lam(nlts):
    blr = nlts.BayesianLinearRegression(1e-14 * np.eye(3), np.zeros(3), 6, 6)
    rows = np.array([[9e3, 3e3, 1e3 / 3]]) * np.linspace(0.1, 1, 50)[:, None]
    before = state_of(blr)
    with pytest.raises(ValueError, match="^lam: expected a larger one"):
        blr.update(rows, np.ones(50))
    assert_same_state(before, state_of(blr))


# An error at any line -----------------------------------------------------------------------------

def interrupted_at(code, line, call):
    """Ctrl-C as soon as this line of this code is reached; whether it was."""
    def watch(frame, event, _):
        if frame.f_code is not code:
            return None
        if event == "line" and frame.f_lineno == line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return watch

    sys.settrace(watch)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def same_state(one, two):
    one, two = agent_state(one), agent_state(two)
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)


def check_every_line(nlts, agent, call, allowed):
    """Interrupted at each line of nlts.py that the call reaches, the agent is as one of `allowed`,
    and goes on."""
    codes = [nlts.NeuralLinearTS.update, nlts.NeuralLinearTS.learn, nlts.ReplayBuffer.add,
             nlts.BayesianLinearRegression.update, nlts._replace]
    reached = 0
    for code in (function.__code__ for function in codes):
        for line in sorted({line for _, _, line in code.co_lines() if line}):
            mine = copy.deepcopy(agent)
            if not interrupted_at(code, line, lambda mine=mine: call(mine)):
                continue
            reached += 1
            assert any(same_state(mine, other) for other in allowed), (code.co_name, line)
            advance(mine, 41)                                # over another phase
    return reached


def one_step(agent):
    context, rewards = step_of(agent)
    agent.update(context, 0, rewards[0])


def test_an_interrupt_at_any_line_of_learn_leaves_all_or_nothing(nlts):
    agent = small_agent(nlts, L=60, P=2)
    advance(agent, 25)
    after = copy.deepcopy(agent)
    after.learn()
    assert check_every_line(nlts, agent, lambda mine: mine.learn(), [agent, after]) > 25


@pytest.mark.parametrize("steps", [24, 39])
def test_an_interrupt_at_any_line_of_update_leaves_the_tuple_in_all_or_in_none(nlts, steps):
    """With and without a learning phase; the buffer is full."""
    agent = small_agent(nlts, P=2)
    advance(agent, steps)
    counted = copy.deepcopy(agent)
    object.__setattr__(counted.config, "L", 10 ** 6)         # the tuple counts, no phase
    one_step(counted)
    after = copy.deepcopy(agent)
    one_step(after)
    assert check_every_line(nlts, agent, one_step, [agent, counted, after]) > 25


def test_a_copy_of_an_agent_is_an_agent_of_its_own(nlts):
    agent = small_agent(nlts)
    advance(agent, 30)
    other = copy.deepcopy(agent)
    before = agent_state(agent)
    advance(other, 30)
    assert_same_state(before, agent_state(agent))
    advance(agent, 30)
    assert_same_state(agent_state(other), agent_state(agent))
