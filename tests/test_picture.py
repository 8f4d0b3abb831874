"""The picture says what its captions say."""
import numpy as np
import pytest

from lab import picture


@pytest.fixture(scope="module")
def rows():
    return {name: picture.measure(name == "contexts moved on", seed=0) for name in picture.ROWS}


def places(contexts):
    """Masks of the grid: near what was forgotten and not near what is kept; where nobody was."""
    near = [np.linalg.norm(picture.PLANE[:, None] - part, axis=2).min(1)
            .reshape(picture.GRID, picture.GRID)
            for part in (contexts[-picture.KEPT:], contexts[:-picture.KEPT])]
    return {"forgotten": (near[1] < 0.1) & (near[0] > 0.1), "nobody": np.minimum(*near) > 0.7}


def certainty(rows, row, panel, place):
    """Geometric mean of s(b) at a kind of place, over that of full memory."""
    contexts, maps = rows[row]
    at = places(contexts)[place]
    return np.exp(np.log(maps[panel][at] / maps["full memory"][at]).mean())


@pytest.mark.parametrize("row, panel, place, least, most", [
    ("one distribution", "no prior", "forgotten", 2, 4),
    ("one distribution", "the paper's prior", "nobody", 0, 0.4),
    ("one distribution", "our prior", "forgotten", 0.8, 1.3),
    ("one distribution", "our prior", "nobody", 0.7, 1.2),
    ("contexts moved on", "no prior", "forgotten", 8, 50),
    ("contexts moved on", "the paper's prior", "nobody", 0, 0.5),
    ("contexts moved on", "our prior", "forgotten", 1.1, 3),
    ("contexts moved on", "our prior", "nobody", 0.7, 1.2)])
def test_captions(rows, row, panel, place, least, most):
    assert least <= certainty(rows, row, panel, place) <= most


def test_buffer_and_forgotten_tuples_lie_together_or_apart(rows):
    means = {name: (contexts[:-picture.KEPT].mean(0), contexts[-picture.KEPT:].mean(0))
             for name, (contexts, _) in rows.items()}
    distance = {name: np.linalg.norm(x - y) for name, (x, y) in means.items()}
    assert distance["one distribution"] < 0.3 and distance["contexts moved on"] > 1


def test_all_panels_share_one_logarithmic_scale(rows):
    figure = picture.draw(rows)
    maps = [axis.collections[0] for axis in figure.axes[:10]]
    assert len({(bands.norm.vmin, bands.norm.vmax) for bands in maps}) == 1
