"""docs/forgetting.html: right in its numbers, and at work in a browser."""
import copy
import io
import json
import re
import time
from types import SimpleNamespace

import browser as chromium
import numpy as np
import pytest
from PIL import Image
from scipy.stats import norm

import nlts
from docs import film, toy
from studies import picture

PAGE = film.DOCS / "forgetting.html"
SMALL = toy.Sizes(phases=3, L=20, hidden=6, P=10)


@pytest.fixture(scope="module")
def data():
    return json.loads((film.DOCS / "film.json").read_text(encoding="utf-8"))


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


# The file -----------------------------------------------------------------------------------------

def test_the_page_is_of_its_numbers_in_one_file_that_loads_nothing(data):
    text = PAGE.read_text(encoding="utf-8")
    assert re.sub("(?<=base64,)[^\"]*", "", text) == film.page(data, b""), "see docs/film.py"
    assert len(text.encode()) < 1_200_000 and (film.DOCS / "film.gif").stat().st_size < 1_500_000
    assert "@import" not in text and "url(" not in text and "<link" not in text
    source, = re.findall(r'src="([^"]*)', text)              # shown if there is no script
    assert source.startswith("data:image/png;") and '<div id="film" hidden>' in text


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
    sizes = toy.Sizes(phases=2, L=40, hidden=8, P=20)
    data = film.measure(SimpleNamespace(seed=0), sizes, runs=2)
    assert film.report(data).count("\n") == 6 * len(toy.PANELS) + 1
    original = toy.replay("moving", 60, 0, sizes)
    files = film.files(data)
    again = film.replayed(json.loads(files["film.json"]), "moving", 60)
    for move in toy.MOVES:                                   # what was encoded comes back
        network, known = original.posteriors(2, move)
        for name, arm in again.posteriors(2, move)[1].items():
            s = [toy.deviation(one, network, original.contexts) for one in (arm, known[name])]
            np.testing.assert_allclose(*s, rtol=1e-6)
    assert Image.open(io.BytesIO(files["film.gif"])).n_frames == 4


@pytest.mark.parametrize("memory", film.MEMORY)
def test_the_story_is_true(data, memory):
    moving, one = (film.replayed(data, kind, memory) for kind in ("moving", "one"))
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


def contrast(*colors):
    """Of two colors (red, green, blue), as accessibility guidelines define it: 1 to 21."""
    rgb = np.array([list(color) for color in colors]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["forgetting.html", "reading.html"])
def test_colors_stand_out_in_both_themes(name):
    """Each text on each ground, 4.5 : 1; edges, 3 : 1."""
    text = (film.DOCS / name).read_text(encoding="utf-8")
    assert not re.search("[{;] (color|fill): #", text)       # there are no other colors of text
    for theme in re.findall(r":root {(.*?)}", text, re.DOTALL)[:2]:
        color = {key: bytes.fromhex(rgb) for key, rgb in re.findall(r"--(\w+): #(\w{6})", theme)}
        assert contrast(color.pop("edge"), color["bg"]) >= 3
        grounds = [color.pop(key) for key in ("bg", "card", "lit", "wrong") if key in color]
        inks = [color[key] for key in color if key != "line"]
        assert min(contrast(ink, ground) for ink in inks for ground in grounds) >= 4.5


# README's picture ---------------------------------------------------------------------------------

def test_claims_of_the_picture_are_counted_and_its_maps_share_a_scale():
    data = picture.measure(SimpleNamespace(seed=0, runs=1), toy.Sizes(phases=1, L=150, P=20))
    for name, row in data["shown"].items():
        contexts, maps = np.array(row["contexts"]), row["maps"]
        gone, kept = contexts[:-picture.KEPT], contexts[-picture.KEPT:]
        assert (np.linalg.norm(gone.mean(0) - kept.mean(0)) > 0.8) == (name == "contexts moved on")
        assert np.mean(maps["no"]) > np.mean(maps["full"]) and len(maps) == 5
    for row in data["ratios"].values():                      # planted: everybody is twice as unsure
        row.append({panel: [2.0, 2.0] for panel in picture.PRIORS})
    told = " ".join(picture.report(data).split())
    assert "no prior is less certain where tuples were forgotten 2 of 2 seeds" in told
    assert "within a factor of 1.5 away from tuples 1 of 2 seeds" in told
    norms = [axis.collections[0].norm for axis in picture.plot(data)[""].axes[:10]]
    assert len({(norm.vmin, norm.vmax) for norm in norms}) == 1


# The page in a browser ----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with chromium.browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture
def page(window):
    """Open the page with a query; at the end the console must be empty."""
    def load(query="", width=1280, height=900, **looks):
        window.get(PAGE.as_uri() + query, width, height, **looks)
        return window

    yield load
    assert window.console() == []


def read(window, name):
    return window.run("return document.getElementById(arguments[0]).textContent", name)


def maps(window):
    return window.run("return [...document.querySelectorAll('canvas')].map(c => c.toDataURL())")


def place(window):
    """Phase and move."""
    return window.run("return [Number(document.getElementById('phase').value), "
                      "document.querySelector('input[name=move]:checked').value]")


@pytest.mark.slow
def test_the_first_view_shows_forgetting_at_the_screens_pixel_ratio(page):
    window = page(scale=2)
    wide = window.run("const map = document.querySelector('canvas'); "
                      "return map.width / map.clientWidth")
    assert wide == pytest.approx(2, abs=0.01)
    assert place(window) == [5, "back"] and len(set(maps(window))) == 4
    assert float(read(window, "gone-0")[2:]) > 10            # × 17
    assert float(read(window, "played-3")[:-2]) < 5 < float(read(window, "played-0")[:-2])


@pytest.mark.slow
@pytest.mark.parametrize("move", toy.MOVES)
@pytest.mark.parametrize("kind, memory, paper", [
    ("moving", 30, "printed"), ("one", 60, "smallest")])
def test_the_numbers_at_the_cross_are_numpys(page, data, kind, memory, paper, move):
    """s(b) within 1 %, and the share of samples above the safe arm's reward."""
    network, known = film.replayed(data, kind, memory).posteriors(4, move)
    nu = data["views"][f"{kind}-{memory}"]["nu"][12 + toy.MOVES.index(move)]
    for x, y in ((-1.2, -0.4), (0.35, 1.6), (1.9, -1.9)):
        window = page(f"?contexts={kind}&memory={memory}&phase=4&move={move}&at={x},{y}"
                      f"&paper={paper}")
        phi = nlts.last_layer_activations(network, np.array([[x, y]]))
        for panel, name in enumerate(["no", paper, "carried", "full"]):
            s = np.sqrt(known[name].s2(phi)[0])
            assert float(read(window, f"s-{panel}").split()[0]) == pytest.approx(s, rel=0.01)
            share = norm.cdf((phi @ known[name].mu_hat)[0] / (s * nu[name]))
            shown = float(read(window, f"played-{panel}")[:-2])
            assert shown == pytest.approx(100 * share, abs=0.6)


@pytest.mark.slow
def test_keys_pass_through_the_three_moves_and_the_address_follows(page):
    window = page("?phase=4&move=before")
    before = maps(window)[0]
    for stop in ([4, "out"], [4, "carry"], [4, "back"], [5, "before"]):
        window.press("right")
        after = maps(window)[0]
        assert place(window) == stop and after != before     # each move changes the map
        before = after
    window.press("home", "left")
    assert place(window) == [1, "before"]
    window.press("end", "right")
    assert place(window) == [10, "back"]
    choices = "input[value=one], input[value='120'], input[value=smallest], #tuples"
    window.run("document.querySelectorAll(arguments[0]).forEach(choice => choice.click())", choices)
    time.sleep(0.5)
    address, shown = window.run("return location.search"), maps(window)
    for part in ("contexts=one", "memory=120", "paper=smallest", "phase=10", "tuples=0"):
        assert part in address
    assert maps(page(address)) == shown and place(window) == [10, "back"]


@pytest.mark.slow
def test_play_steps_and_ends_and_the_regret_grows(page):
    def points():
        return window.run("return document.querySelector('#regret .line.p0').points.length")

    window = page("?phase=10&move=carry")
    last = points()
    window.press("space")
    assert place(window) == [10, "back"] and read(window, "play") == "❚❚ Pause"
    window.press("space", "space")                           # it starts again
    assert place(window) == [1, "before"] and points() == last // 10 + 1
    time.sleep(4.3)
    assert place(window) == [1, "out"]


@pytest.mark.slow
def test_the_keyboard_alone_reaches_everything(page):
    window = page("?at=0,0")
    reached = set()
    for _ in range(20):
        window.press("tab")
        reached.add(window.run("const e = document.activeElement; return e.id || e.name || e.href"))
    assert {"play", "phase", "move", "contexts", "memory", "paper", "tuples", "link", "map-0",
            "map-3"} <= reached
    window.run("document.getElementById('map-2').focus()")
    window.press("right", "right")
    assert read(window, "cross").startswith("At the cross, b = (0.2, 0.0)")
    assert place(window) == [5, "back"]


@pytest.mark.slow
@pytest.mark.parametrize("query", ["?slide=1", "?slide=1&phase=10&contexts=one&memory=120"])
def test_a_slide_fits_a_projector(page, query):
    window = page(query, 1280, 720)
    assert window.run("return document.documentElement.scrollHeight") == 720
    bottoms = window.run("return ['regret', 'play', 'map-3'].map("
                         "id => document.getElementById(id).getBoundingClientRect().bottom)")
    assert max(bottoms) <= 720 and read(window, "one-0").startswith("×")


@pytest.mark.slow
@pytest.mark.parametrize("width, dark", [(1280, False), (1280, True), (1000, False), (400, True)])
def test_it_fits_and_can_be_read(page, width, dark):
    window = page("", width, dark=dark)
    assert window.run("return document.documentElement.scrollWidth") <= width
    if width == 400:
        heights = window.run("return [...document.querySelectorAll('#play, #phase, label')].map("
                             "target => target.offsetHeight)")
        assert min(filter(None, heights)) >= 44
        bar = "document.getElementById('bar').getBoundingClientRect()"
        assert window.run(f"return {bar}.bottom") == 900


@pytest.mark.slow
def test_printed_the_maps_stand_in_a_row(page):
    window = page("", 794, 1123, media="print")              # A4
    boxes = window.run("return [...document.querySelectorAll('canvas')].map("
                       "canvas => canvas.getBoundingClientRect())")
    assert len({box["top"] for box in boxes}) == 1
    assert window.run("return document.documentElement.scrollWidth") <= 794
