"""Saving and loading agents: an agent from a file does what the saved one does, bit for bit."""
import functools
import io

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import beyond
import nlts
from lab import fast, references, saving


def neural(seed=0, memory=18, prior=nlts.likelihood_matching, **options):
    options = {"L": 40, "P": 20, "batch": 8} | options
    network = nlts.MLP(4, 3, 6, seed=seed)
    return nlts.NeuralLinearTS(network, 3, memory, prior, seed=seed, **options)


def greedy(seed=0, epsilon=0.2):
    network = nlts.MLP(4, 3, 6, seed=seed)
    return nlts.EpsilonGreedy(network, 3, epsilon, memory=18, L=40, P=20, batch=8, seed=seed)


def text(seed=0):
    network = nlts.TextCNN(10, 2, widths=(2,), hidden=5, seed=seed)
    return nlts.NeuralLinearTS(network, 2, 10, beyond.carried_prior, L=40, P=5, batch=4, seed=seed)


AGENTS = {
    "linear": lambda seed=0: nlts.LinearTS(4, 3, seed=seed),
    "linear as printed": lambda seed=0: nlts.LinearTS(4, 3, v=0.5, seed=seed),
    "full memory": lambda seed=0: neural(seed, memory=None),
    "the paper's": neural,
    "no prior": lambda seed=0: neural(seed, prior=nlts.no_prior),
    "carried": lambda seed=0: neural(seed, prior=beyond.carried_prior, train=fast.train),
    "a partial": lambda seed=0: neural(seed, prior=functools.partial(nlts.no_prior)),
    "greedy": greedy,
    "text": text,
}


def advance(agent, steps):
    """Let the agent play; what it did. The contexts depend on its step only."""
    done = []
    for _ in range(steps):
        rng = np.random.default_rng(agent.t)
        context = rng.integers(10, size=4).astype(float)
        arm = agent.act(context)
        done.append(arm)
        agent.update(context, arm, float(rng.normal() + arm * context[0] / 10))
    return done


def assert_same(one, two):
    """Two agents in the same state, to the last bit."""
    one, two = saving.state_of(one), saving.state_of(two)
    assert one.keys() == two.keys()
    for name in one:
        assert one[name].dtype == two[name].dtype, name
        assert one[name].tobytes() == two[name].tobytes(), name


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("steps", [0, 30, 50])
def test_a_loaded_agent_goes_on_bit_for_bit(kind, steps, tmp_path):
    agent, other = AGENTS[kind](), AGENTS[kind](seed=1)
    advance(agent, steps)
    advance(other, 7)                                 # what the other one did is forgotten
    saving.save(agent, tmp_path / "agent")
    saving.load(other, tmp_path / "agent")
    assert_same(agent, other)
    assert advance(agent, 60) == advance(other, 60)   # over at least one learning phase
    assert_same(agent, other)
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]


def test_the_loaded_agent_shares_nothing_with_the_file_or_its_old_self(tmp_path):
    agent, other = neural(), neural(seed=1)
    advance(agent, 50)
    saving.save(agent, tmp_path / "agent")
    saving.load(other, tmp_path / "agent")
    advance(other, 60)
    twin = neural(seed=2)
    saving.load(twin, tmp_path / "agent")
    assert_same(agent, twin)


def refused(agent, path, match="^path"):
    """Loading raises a ValueError, and the agent stays as it was."""
    before = saving.state_of(agent)
    network = agent.network
    with pytest.raises(ValueError, match=match):
        saving.load(agent, path)
    after = saving.state_of(agent)
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    assert agent.network is network


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A file as save writes it, and an agent that it fits."""
    path = tmp_path_factory.mktemp("saved") / "agent"
    agent, other = neural(), neural(seed=1)
    advance(agent, 50)
    advance(other, 10)
    saving.save(agent, path)
    return path, path.read_bytes(), other


@settings(max_examples=60)
@example(where=0.0, bit=0)
@example(where=1.0, bit=7)
@given(where=st.floats(0, 1), bit=st.integers(0, 7))
def test_one_flipped_bit_anywhere_is_refused(written, where, bit):
    path, content, agent = written
    damaged = bytearray(content)
    damaged[round(where * (len(content) - 1))] ^= 1 << bit
    path.write_bytes(damaged)
    refused(agent, path)


@settings(max_examples=30)
@given(kept=st.floats(0, 1, exclude_max=True))
def test_a_cut_file_is_refused(written, kept):
    path, content, agent = written
    path.write_bytes(content[:int(kept * len(content))])
    refused(agent, path)


def signed(path, **arrays):
    """A file with a right digest: what a forger, not an accident, could write."""
    archive = io.BytesIO()
    np.savez(archive, **arrays)
    content = archive.getvalue()
    path.write_bytes(saving.MARK + saving.digest(content) + b"\n" + content)


class Bomb:
    """Unpickled, it would leave a trace."""
    def __reduce__(self):
        return (pytest.fail, ("code in the file was executed",))


@pytest.mark.parametrize("forged", [
    {"rng": "{}"}, {"rng": "no json"}, {"t": [1, 2]}, {"settings": "{}"},
    {"network/weights": np.zeros((2, 6))}, {"buffer/rewards": np.zeros(1)},
    {"settings": np.array([Bomb()], dtype=object)}, {"rng": np.array([Bomb()], dtype=object)},
])
def test_a_forged_file_is_refused_and_not_executed(forged, tmp_path):
    agent, other = neural(), neural(seed=1)
    advance(agent, 50)
    advance(other, 10)
    signed(tmp_path / "agent", **saving.state_of(agent) | forged)
    refused(other, tmp_path / "agent")


@pytest.mark.parametrize("missing", ["settings", "rng", "t", "arms/1/b", "network/weights",
                                     "buffer/arms"])
def test_a_file_without_a_part_is_refused(missing, tmp_path):
    agent = neural()
    advance(agent, 10)
    state = saving.state_of(agent)
    del state[missing]
    signed(tmp_path / "agent", **state)
    refused(neural(), tmp_path / "agent")


OTHER = {
    "memory": lambda: neural(memory=20), "no limit": lambda: neural(memory=None),
    "prior": lambda: neural(prior=nlts.no_prior), "train": lambda: neural(train=fast.train),
    "L": lambda: neural(L=50), "lam": lambda: neural(lam=0.5), "greedy": greedy,
    "ridge": lambda: neural(prior=functools.partial(nlts.no_prior)),
    "network": lambda: nlts.NeuralLinearTS(nlts.MLP(5, 3, 6), 3, 18, L=40, P=20, batch=8),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_file_of_an_agent_with_other_settings_is_refused(name, tmp_path):
    saving.save(OTHER[name](), tmp_path / "agent")
    refused(neural(), tmp_path / "agent", match="^path")


def test_other_epsilon_and_v_are_refused(tmp_path):
    saving.save(greedy(epsilon=0.2), tmp_path / "agent")
    with pytest.raises(ValueError, match="epsilon"):
        saving.load(greedy(epsilon=0.3), tmp_path / "agent")
    saving.save(nlts.LinearTS(4, 3, v=0.5), tmp_path / "agent")
    with pytest.raises(ValueError, match="path"):
        saving.load(nlts.LinearTS(4, 3, v=0.6), tmp_path / "agent")


def test_what_cannot_be_saved_is_said():
    """A function with a state of its own would not go on bit for bit."""
    agent = references.perfect_prior(nlts.MLP(4, 3), 3, memory=18)
    with pytest.raises(ValueError, match="^train"):
        saving.state_of(agent)


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    agent, path = neural(), tmp_path / "agent"
    saving.save(agent, path)
    before = path.read_bytes()
    agent.train = functools.partial(nlts.train, nlts.MLP(4, 3))     # no JSON
    with pytest.raises((TypeError, ValueError)):
        saving.save(agent, path)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        saving.load(neural(), tmp_path / "nothing")


def test_the_global_random_state_is_left_alone(tmp_path):
    agent = neural()
    saving.save(agent, tmp_path / "agent")
    np.random.seed(3)
    torch.manual_seed(3)
    expected = np.random.RandomState(3).rand(), torch.Generator().manual_seed(3).initial_seed()
    saving.load(agent, tmp_path / "agent")
    assert (np.random.rand(), torch.initial_seed()) == expected
