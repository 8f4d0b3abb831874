"""The pages of docs/ as a reader has them: in a browser, printed, with the keyboard, on a phone."""
import re
import shutil
import time

import browser as chromium
import numpy as np
import pytest
from scipy.stats import norm
from test_film import replayed

import nlts
from docs import film, toy
from docs.reading import DOCS

PAGES = "forgetting.html", "reading.html"


def contrast(*colors):
    """Of two colors (red, green, blue), as accessibility guidelines define it: 1 to 21."""
    rgb = np.array([list(color) for color in colors]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", PAGES)
def test_colors_stand_out_in_both_themes(name):
    """Each text on each ground, 4.5 : 1; edges, 3 : 1."""
    text = (DOCS / name).read_text(encoding="utf-8")
    assert not re.search("[{;] (color|fill): #", text)       # there are no other colors of text
    for theme in re.findall(r":root {(.*?)}", text, re.DOTALL)[:2]:
        color = {key: bytes.fromhex(rgb) for key, rgb in re.findall(r"--(\w+): #(\w{6})", theme)}
        assert contrast(color.pop("edge"), color["bg"]) >= 3
        grounds = [color.pop(key) for key in ("bg", "card", "lit", "wrong") if key in color]
        inks = [color[key] for key in color if key != "line"]
        assert min(contrast(ink, ground) for ink in inks for ground in grounds) >= 4.5


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not shutil.which("chromedriver"):
        pytest.skip("chromedriver is not installed")
    with chromium.browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture
def page(browser):
    """Open a page: nothing is wider than the screen; at the end the console must be empty."""
    def load(name, width=1280, height=900, **looks):
        browser.get((DOCS / "x").as_uri()[:-1] + name, width, height, **looks)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        return browser

    yield load
    assert browser.console() == []


def boxes(window, selector):
    """Where the elements are on the screen."""
    return window.run("return [...document.querySelectorAll(arguments[0])].map("
                      "element => element.getBoundingClientRect())", selector)


@pytest.mark.slow
def test_printed_the_maps_stand_in_a_row_and_no_line_of_code_is_lost(page):
    window = page("forgetting.html", 794, 1123, media="print")           # A4
    assert len({box["top"] for box in boxes(window, "canvas")}) == 1
    window = page("reading.html", 1123, 794, media="print")
    assert all(box["height"] for box in boxes(window, "code[id]"))


# docs/reading.html --------------------------------------------------------------------------------

@pytest.mark.slow
@pytest.mark.parametrize("width, columns", [(1280, 2), (1000, 2), (400, 1)])
def test_a_card_stands_beside_its_code_and_the_navigation_hides_nothing(page, width, columns):
    window = page("reading.html", width, dark=width == 400)
    assert len({box["left"] for box in boxes(window, ".paper, .code")[:2]}) == columns
    window.run("location.hash = 'line-2-14'")
    bar, card = boxes(window, "nav, #line-2-14")
    assert bar["top"] == 0 and bar["bottom"] <= card["top"] < 900


@pytest.mark.slow
def test_the_keyboard_skips_to_the_content_and_lights_up_a_partner(page):
    window = page("reading.html")
    window.press("tab")
    assert window.run("return document.activeElement.hash") == "#main"
    line = "document.querySelector('li[data-t=line-2-14]')"
    color = f"return getComputedStyle({line}).backgroundColor"
    before = window.run(color)
    window.run("document.querySelector('.card[id=line-2-14] a').focus()")
    assert window.run(color) != before


# docs/forgetting.html -----------------------------------------------------------------------------

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
    window = page("forgetting.html", scale=2)
    wide = window.run("const map = document.querySelector('canvas'); "
                      "return map.width / map.clientWidth")
    assert wide == pytest.approx(2, abs=0.01)
    assert place(window) == [5, "back"] and len(set(maps(window))) == 4
    assert float(read(window, "gone-0")[2:]) > 10            # × 19
    assert float(read(window, "played-3")[:-2]) < 5 < float(read(window, "played-0")[:-2])


@pytest.mark.slow
@pytest.mark.parametrize("move", toy.MOVES)
@pytest.mark.parametrize("kind, memory, paper", [
    ("moving", 30, "printed"), ("one", 60, "smallest")])
def test_the_numbers_at_the_cross_are_numpys(page, kind, memory, paper, move):
    """s(b) within 1 %, and the share of samples above the safe arm's reward."""
    data, _ = film.contents(film.PAGE.read_text(encoding="utf-8"))
    network, known = replayed(data, kind, memory).posteriors(4, move)
    nu = data["views"][f"{kind}-{memory}"]["nu"][12 + toy.MOVES.index(move)]
    for x, y in ((-1.2, -0.4), (0.35, 1.6), (1.9, -1.9)):
        window = page(f"forgetting.html?contexts={kind}&memory={memory}&phase=4&move={move}"
                      f"&at={x},{y}&paper={paper}")
        phi = nlts.last_layer_activations(network, np.array([[x, y]]))
        for panel, name in enumerate(["no", paper, "carried", "full"]):
            s = np.sqrt(known[name].s2(phi)[0])
            assert float(read(window, f"s-{panel}").split()[0]) == pytest.approx(s, rel=0.01)
            share = norm.cdf((phi @ known[name].mu_hat)[0] / (s * nu[name]))
            shown = float(read(window, f"played-{panel}")[:-2])
            assert shown == pytest.approx(100 * share, abs=0.6)


@pytest.mark.slow
def test_keys_pass_through_the_three_moves_and_the_address_follows(page):
    window = page("forgetting.html?phase=4&move=before")
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
    assert maps(page("forgetting.html" + address)) == shown and place(window) == [10, "back"]


@pytest.mark.slow
def test_play_steps_and_ends_and_the_regret_grows(page):
    def points():
        return window.run("return document.querySelector('#regret .line.p0').points.length")

    window = page("forgetting.html?phase=10&move=carry")
    last = points()
    window.press("space")
    assert place(window) == [10, "back"] and read(window, "play") == "❚❚ Pause"
    window.press("space", "space")                           # it starts again
    assert place(window) == [1, "before"] and points() == last // 10 + 1
    time.sleep(4.3)
    assert place(window) == [1, "out"]


@pytest.mark.slow
def test_the_keyboard_alone_reaches_everything(page):
    window = page("forgetting.html?at=0,0", 1000)
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
    window = page("forgetting.html" + query, 1280, 720)
    assert window.run("return document.documentElement.scrollHeight") == 720
    assert max(box["bottom"] for box in boxes(window, "#regret, #play, #map-3")) <= 720
    assert read(window, "one-0").startswith("×")


@pytest.mark.slow
def test_on_a_phone_targets_are_large_and_maps_stay_in_place(page):
    window = page("forgetting.html?phase=1&move=before", 400, 800, dark=True)
    targets = boxes(window, "#play, #phase, label")
    assert min(box["height"] for box in targets if box["height"]) >= 44
    assert boxes(window, "#bar")[0]["bottom"] == 800
    tops = set()
    for _ in range(4 * 10):
        tops.add(boxes(window, "#panels")[0]["top"])
        window.press("right")
    assert len(tops) == 1
