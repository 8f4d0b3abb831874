"""lab/fast.py does what nlts.train does, and steps aside when that has changed."""
import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_programs import copy_of_program, edited, measure

import nlts
from lab import fast


def difference_from_plain_training(train, dim=4, n_arms=3, hidden=7, n=30, **settings):
    """Largest difference of a parameter from nlts.train's, and whether the random states agree."""
    data, buffer = np.random.default_rng(n), nlts.ReplayBuffer(None)
    for _ in range(n):
        context = data.normal(size=dim)
        buffer.add(context, int(data.integers(n_arms)), context[0] + data.normal())
    config = nlts.Config(**settings)
    networks = [nlts.MLP(dim, n_arms, hidden, seed=1) for _ in range(2)]
    states = [np.random.default_rng(5) for _ in range(2)]
    for network, state, how in zip(networks, states, (nlts.train, train), strict=True):
        how(network, buffer, config, state)
    pairs = zip(*(network.parameters() for network in networks), strict=True)
    difference = max((p - q).abs().max().item() for p, q in pairs)
    return difference, states[0].bit_generator.state == states[1].bit_generator.state


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 8), st.integers(1, 30),
       st.integers(0, 40), st.integers(1, 16), st.sampled_from([1e-3, 1e-2, 0.1]))
def test_fast_training_is_the_plain_loop(dim, n_arms, hidden, n, P, batch, lr):
    """Explicit gradients and Adam against torch's autograd and Adam."""
    difference, same_state = difference_from_plain_training(
        fast.train, dim, n_arms, hidden, n, P=P, batch=batch, lr=lr)
    assert difference < 1e-8 and same_state


def test_what_was_compared_is_what_is_there():
    assert fast.changed() == [], (
        "nlts.train or nlts.MLP has changed, and experiments train with it, about 8 times slower. "
        "Change lab/fast.py alike; once the tests above pass, write the new hashes into COMPARED")


@pytest.mark.parametrize("right, wrong", [
    ("D[each, arms] = 2 / B * (output - rewards[rows])",
     "D[:] = 2 / B * (output - rewards[rows])[:, None]"),            # every arm differentiated
    ("dphi *= phi > 0", "pass"),                                     # no ReLU in the gradient
    ("beta2 ** step", "beta2")])                                     # no correction of the bias
def test_planted_bugs_in_the_fast_training_are_caught(right, wrong):
    source = inspect.getsource(fast)
    assert source.count(right) == 1
    scope = {}
    exec(source.replace(right, wrong), scope)
    settings = {"P": 60, "batch": 8, "lr": 1e-2}
    assert difference_from_plain_training(fast.train, **settings)[0] < 1e-9
    assert difference_from_plain_training(scope["train"], **settings)[0] > 1e-4


def test_other_networks_are_trained_by_nlts():
    class Own(nlts.MLP):
        """A network that is not quite nlts's."""

    assert fast.training_of(nlts.MLP(2, 3)) is fast.train
    assert fast.training_of(Own(2, 3)) is nlts.train
    assert fast.training_of(nlts.TextCNN(5, 3, size=2, hidden=2)) is nlts.train


@pytest.mark.slow
def test_a_changed_network_or_training_is_what_runs(tmp_path):
    """The same command, with the same --out: all is played anew, with other rewards."""
    program = copy_of_program(tmp_path)
    arguments = ["table", "--datasets", "adult", "--algorithms", "neural-linear,no-prior",
                 "--runs", "2", "--steps", "440", "--jobs", "2", "--out", str(tmp_path / "out")]
    before, words = measure(program, *arguments)
    assert "has changed" not in words
    edited(program / "nlts.py", "rows = rng.integers(len(played), size=config.batch)",
           "rows = np.arange(min(len(played), config.batch))")
    edited(program / "nlts.py", "weights.uniform_(-0.3, 0.3", "weights.uniform_(-0.2, 0.2")
    after, words = measure(program, *arguments)
    for name in ("train", "MLP"):
        assert words.count(f"nlts.{name} has changed: training with it, about 8 times slower") == 1
    assert "0 runs on file, 4 to play" in words
    assert [result["reward"] for result in after] != [result["reward"] for result in before]
