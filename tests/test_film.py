"""docs/forgetting.html: right in its numbers. What it does in a browser: tests/test_pages.py."""
import base64
import copy
import io
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

import nlts
from docs import film, toy

SMALL = toy.Sizes(phases=3, L=20, hidden=6, P=10)


@pytest.fixture(scope="module")
def data():
    return film.contents(film.PAGE.read_text(encoding="utf-8"))[0]


def decoded(text, *shape):
    """Numbers that the page has as bytes."""
    return np.frombuffer(base64.b64decode(text)).reshape(*shape).copy()


def replayed(data, kind, memory):
    """A view of the page as a toy.Replay; a and b, which have no part in s(b), are 1."""
    view, g = data["views"][f"{kind}-{memory}"], data["sizes"]["hidden"]
    tuples, half = decoded(data["streams"][kind], -1, 3), np.zeros((g, g))
    networks, priors = [], {}
    for parameters in decoded(view["networks"], -1, g, 3):
        networks.append(nlts.MLP(2, 1, g))
        networks[-1].input.data[:] = torch.tensor(parameters[:, :2])
        networks[-1].bias.data[:] = torch.tensor(parameters[:, 2])
    for name, text in view["priors"].items():
        priors[name] = []
        for numbers in decoded(text, len(networks), -1):
            half[np.tril_indices(g)] = numbers[:-g]
            precision = half + half.T - np.diag(half.diagonal())
            mean = np.linalg.solve(precision, numbers[-g:])
            priors[name].append(nlts.BayesianLinearRegression(precision, mean, 1, 1))
    return toy.Replay(tuples[:, :2], tuples[:, 2], data["sizes"]["L"], memory, networks, priors)


# The toy ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["no", "smallest", "carried"])
@pytest.mark.parametrize("memory", [10, 30])
def test_a_prior_and_the_tuples_since_are_the_agents_posterior(name, memory):
    """Of an agent that is asked before and after each learning phase."""
    replay = toy.replay("moving", memory, 1, SMALL, {"no": nlts.no_prior, name: toy.PRIORS[name]})
    seen = {}

    def prior(forgotten, *others):
        seen.update(before=agent.arms[0], out=forgotten[0])
        priors = toy.PRIORS[name](forgotten, *others)
        old = forgotten[0]
        seen["carry"] = nlts.BayesianLinearRegression(*priors[0], old.a, old.b)
        return priors

    agent = nlts.NeuralLinearTS(copy.deepcopy(replay.networks[0]), 1, memory, prior, seed=1,
                                L=SMALL.L, P=SMALL.P, lr=SMALL.lr)
    for t, (context, reward) in enumerate(zip(replay.contexts, replay.rewards, strict=True), 1):
        agent.update(context, 0, reward)
        if t % SMALL.L == 0:
            for move, arm in (seen | {"back": agent.arms[0]}).items():
                known = replay.posteriors(t // SMALL.L, move)[1][name]
                for part in ("precision", "mu_hat", "a", "b"):
                    np.testing.assert_allclose(getattr(known, part), getattr(arm, part),
                                               rtol=1e-6, atol=1e-9)


def test_full_memory_and_a_ratio_by_hand():
    replay = toy.replay("one", 10, 0, SMALL, {"no": nlts.no_prior})
    network, known = replay.posteriors(2, "back")
    E = nlts.last_layer_activations(network, replay.contexts[:40])

    def s(rows):
        return np.sqrt(np.diag(E[:30] @ np.linalg.inv(0.25 * np.eye(6) + rows.T @ rows) @ E[:30].T))

    np.testing.assert_allclose(known["full"].precision, 0.25 * np.eye(6) + E.T @ E)
    expected = np.exp(np.mean(np.log(s(E[30:]) / s(E))))     # 30 of 40 tuples are forgotten
    ratios = replay.ratios(2, "back")
    assert ratios["no"][0] == pytest.approx(expected) and ratios["full"] == pytest.approx([1, 1])
    assert toy.replay("one", 90, 0, SMALL, {"no": nlts.no_prior}).ratios(1, "out")["no"][0] is None


# The page -----------------------------------------------------------------------------------------

def test_the_page_is_up_to_date_in_one_file_that_loads_nothing():
    text = film.PAGE.read_text(encoding="utf-8")
    assert text == film.page(*film.contents(text)), "see docs/film.py"
    assert len(text.encode()) < 1_200_000
    assert "@import" not in text and "url(" not in text and "<link" not in text
    assert text.count(" src=") == 1                          # a picture, if there is no script


@pytest.mark.parametrize("kind", film.KINDS)
def test_the_numbers_are_of_the_program_as_it_is(data, kind):
    priors = {name: toy.PRIORS[name] for name in ("no", "carried")}
    replay = toy.replay(kind, 30, data["seed"], toy.SIZES, priors)
    for stop in (18, 39):                                    # phase 5, carry; phase 10, back
        ratios = replay.ratios(1 + stop // 4, toy.MOVES[stop % 4])
        for name in priors:
            stored = data["views"][f"{kind}-30"]["ratio"][stop][name]
            np.testing.assert_allclose(stored, ratios[name], rtol=0.01)


def test_measured_reported_and_written_on_small_sizes():
    measured = film.measure(SimpleNamespace(seed=0), toy.Sizes(1, L=80, hidden=6, P=20), runs=2)
    data, original = measured
    assert film.report(measured).count("\n") == 6 * len(toy.PANELS) + 1
    files = film.files(measured)
    again = replayed(film.contents(files["forgetting.html"])[0], "moving", film.MEMORY[0])
    for move in toy.MOVES:                                   # what was encoded comes back
        network, known = original.posteriors(1, move)
        for name, arm in again.posteriors(1, move)[1].items():
            s = [toy.deviation(one, network, original.contexts) for one in (arm, known[name])]
            np.testing.assert_allclose(*s, rtol=1e-6)
    assert Image.open(io.BytesIO(files["film.gif"])).n_frames == 2


@pytest.mark.parametrize("memory", film.MEMORY)
def test_the_story_is_true(data, memory):
    moving, one = (replayed(data, kind, memory) for kind in ("moving", "one"))
    for phase, x in ((3, -1.2), (6, -1.2), (9, 1.2)):        # forgotten there without a prior
        network, known = moving.posteriors(phase, "back")
        assert toy.ratio(known["no"], known["full"], network, np.array([[x, -0.4]])) > 3
    s = {}
    for phase in (3, 6, 10):
        network, known = one.posteriors(phase, "back")
        s[phase] = {name: toy.deviation(arm, network, one.contexts).mean()
                    for name, arm in known.items()}
    assert s[10]["no"] > 0.9 * s[3]["no"]                    # its buffer, and no more
    assert s[10]["carried"] < s[6]["carried"] and s[10]["printed"] < s[6]["printed"]
    gone, away = data["views"][f"one-{memory}"]["ratio"][-1]["printed"]
    assert away < gone < 1
    ratio = data["views"][f"moving-{memory}"]["ratio"][-1]   # what reading.html says of its picture
    assert ratio["no"][0] > 3 and ratio["smallest"][1] < ratio["printed"][1] < 1
    regret = {name: np.array(line) for name, line
              in data["views"][f"moving-{memory}"]["regret"].items()}
    loss = regret["no"] - regret["full"]                     # most of it after phase 5
    assert loss[len(loss) // 2 - 1] < loss[-1] / 2
