"""examples/forgetting.py, at toy size."""
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot

PATH = Path(__file__).resolve().parent.parent / "examples" / "forgetting.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("forgetting_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    pyplot.close("all")


def test_the_regret_around_a_retraining_is_counted_by_hand(example):
    regret = np.zeros((2, 1600))
    regret[:, 780:800] = 1                            # the last 20 steps before step 800
    regret[0, 1200:1220] = 1                          # in one run, the first 20 after step 1200
    regret[:, 400:420] = 1                            # the first retraining does not count
    before, after = example.around(regret)
    np.testing.assert_allclose(before, [0, 0, 0, 0, 100 / 2])
    np.testing.assert_allclose(after, [100 / 4, 0, 0, 0, 0])


def test_four_agents_meet_the_same_readings(example, capsys):
    regrets = example.measure(1, 60)                  # before the first retraining
    assert list(regrets) == ["full memory", "the paper's", "no prior", "carried"]
    printed = capsys.readouterr().out
    for name, regret in regrets.items():
        assert regret.shape == (1, 60) and set(np.unique(regret)) == {0, 1}
        np.testing.assert_array_equal(regret, regrets["no prior"])
        assert f"run 1 of 1, {name}: regret {regret.sum():.0f}" in printed


def test_table_and_picture_show_the_regrets(example, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "picture.png"
    names = "full memory", "the paper's", "no prior", "carried"
    regrets = {name: rng.integers(2, size=(3, 1300)) for name in names}
    example.plot(regrets, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    lines = pyplot.gcf().axes[0].lines
    for k, (name, regret) in enumerate(regrets.items()):
        before, after = example.around(regret)
        numbers = regret.sum(1).mean(), before.mean(), after.mean()
        assert "{:12} {:7.0f} {:7.1f} {:7.1f}".format(name, *numbers) in example.table(regrets)
        np.testing.assert_array_equal(lines[2 * k].get_ydata(), before)
        np.testing.assert_array_equal(lines[2 * k + 1].get_ydata(), after)
        assert lines[2 * k + 1].get_label() == name


@pytest.mark.slow
def test_the_example_runs(example, tmp_path):
    regrets = example.main(["--runs", "1", "--steps", "900", "--out", str(tmp_path / "a.png")])
    assert all(0 < regret.sum() < 450 for regret in regrets.values())
