"""examples/recommender.py, at toy size."""
import importlib.util
from pathlib import Path

import numpy as np

PATH = Path(__file__).resolve().parent.parent / "examples" / "recommender.py"


def test_the_recommender_prints_the_regret_of_four_agents(capsys):
    spec = importlib.util.spec_from_file_location("recommender", PATH)
    recommender = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recommender)
    x, p = recommender.visitors(450, np.random.default_rng(0))
    found = recommender.main(steps=450)
    assert list(found) == ["linear", "the paper's", "carried", "full memory"]
    printed = capsys.readouterr().out
    for name, regret in found.items():
        assert 0 < regret < np.sum(p.max(1) - p.mean(1))
        assert f"{name:12} regret {regret:6.0f}" in printed
