"""docs/forgetting.html: of the program as it is, right in its numbers, at work in a browser."""
import base64
import inspect
import re
import time

import browser as chromium
import numpy as np
import pytest

import experiments
import nlts
from docs import film, phases

VIEWS = [f"{kind}-{memory}" for kind in phases.CONTEXTS for memory in phases.MEMORY]


@pytest.fixture(scope="module")
def text():
    return film.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def numbers(text):
    return film.stored(text)[0]


# The page as a file -------------------------------------------------------------------------------

def test_the_page_is_of_the_program_as_it_is(text):
    numbers, program = film.stored(text)
    advice = "docs/forgetting.html is of another program: python experiments.py film --out figures"
    assert program == film.program(), advice
    png = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]*)"', text)[1])
    assert film.render(numbers, png) == text, advice
    assert png == film.STILL.read_bytes()
    assert numbers["colors"] == film.colors()


@pytest.mark.parametrize("old, new, same", [
    ("lam: float = 0.25", "lam: float = 0.26", False), ("[2.23]", "[2.24]", True),
    ("Eq. 5: the mu0", "Eq. 5, the mu0", True), ("rho / 2 * y @ y", "rho * y @ y", False)])
def test_the_digest_sees_a_number_and_no_comment(old, new, same):
    source = inspect.getsource(nlts)
    assert old in source
    assert (film.digest([source]) == film.digest([source.replace(old, new)])) == same


@pytest.mark.parametrize("kind, memory, last", [("moving", 30, 3), ("one", 60, 2)])
def test_numbers_and_maps_are_those_of_nlts(numbers, kind, memory, last):
    contexts, frames = phases.replay(kind, memory, numbers["seed"], last)
    view = numbers["views"][f"{kind}-{memory}"]
    new = phases.written(contexts, frames, np.zeros((2, 4, phases.PHASES * phases.L)))
    assert new["contexts"] == view["contexts"]
    assert new["forgotten"] == view["forgotten"][:last] == [max(60 * k - memory, 0)
                                                            for k in range(1, last + 1)]
    for key in ("ratio", "away"):
        np.testing.assert_allclose(np.array(new[key], float), np.array(view[key][:last], float),
                                   atol=0.011)
    shape = (-1, 4, phases.GRID ** 2)
    np.testing.assert_allclose(phases.decoded(new["maps"], shape),
                               phases.decoded(view["maps"], shape)[:last], atol=1.01 / 255)


def test_a_log_ratio_by_hand():
    """Without a prior, after two phases of which the second is in the buffer."""
    contexts, frames = phases.replay("moving", 60, 0, 2)
    rng = np.random.default_rng(0)
    same = phases.stream("moving", rng)
    rewards = np.sin(2 * same[:, 0]) + same[:, 1] + 0.1 * rng.standard_normal(len(same))
    agent = nlts.NeuralLinearTS(phases.spread_network(1, rng), 1, 60, nlts.no_prior, seed=0, L=60,
                                P=300, lr=1e-2)
    for context, reward in zip(same[:120], rewards[:120], strict=True):
        agent.update(context, 0, reward)
    E = nlts.last_layer_activations(agent.network, contexts[:120])

    def s2(rows):
        precision = 0.25 * np.eye(20) + rows.T @ rows
        return np.diag(E[:60] @ np.linalg.inv(precision) @ E[:60].T)

    expected = np.log(s2(E[60:]) / s2(E)).mean()
    assert frames[1]["ratio"][0] == pytest.approx(expected, abs=1e-6)
    assert frames[1]["ratio"][3] == 0


def test_all_priors_train_the_same_network_and_a_run_of_the_bandit_is_like_the_mean(numbers):
    regret = phases.play("one", 30, 0, phases.hills)
    assert regret.shape == (4, 600) and (np.diff(regret, axis=1) >= 0).all()
    assert (regret[:, 59] == regret[0, 59]).all()            # before the first phase all are alike
    view = numbers["views"]["one-30"]
    spread = np.sqrt(phases.RUNS) * np.array(view["error"])[:, -1]
    assert (np.abs(regret[:, -1] - np.array(view["regret"])[:, -1]) < 6 * spread).all()


def test_the_table_has_what_the_view_shows_and_other_rewards_beside_it(text, numbers):
    """A run with waves, of a seed that the table has, is like the mean of its row."""
    for kind, name in phases.CONTEXTS.items():
        view = numbers["views"][f"{kind}-{phases.MEMORY[0]}"]
        last = [[mean[-1], error[-1]]
                for mean, error in zip(view["regret"], view["error"], strict=True)]
        assert numbers["rewards"][f"hills, {name}"] == last
    for row in numbers["rewards"].values():
        assert all(f"<td>{mean} ± {error}</td>" in text for mean, error in row)
    mean, error = np.transpose(numbers["rewards"]["waves, one distribution"])
    regret = phases.play("one", phases.MEMORY[0], numbers["seed"], phases.waves)[:, -1]
    assert (np.abs(regret - mean) < 6 * np.sqrt(phases.RUNS) * error).all()


@pytest.mark.parametrize("ratio, said", [(1, "1.0"), (12.4, "12"), (0.7, "0.7"), (0.1, "1/10"),
                                         (274, "270"), (9.96, "10"), (1 / 2.44, "1/2.4")])
def test_a_ratio_is_said_to_two_digits(ratio, said):
    assert film.share(np.log(ratio)) == said


def value(said):
    """What '12' or '1/12' is."""
    over, _, under = said.partition("/")
    return float(over) / float(under or 1)


def check_ratio(said, verdict, log_ratio):
    assert value(said) == pytest.approx(np.exp(log_ratio), rel=0.06)
    near = abs(log_ratio) < np.log(1.5)
    assert verdict == ("nearly right" if near else ["too certain", "too uncertain"][log_ratio > 0])


@pytest.mark.parametrize("name", VIEWS)
def test_every_sentence_is_true(numbers, name):
    view = numbers["views"][name]
    for k, sentence in enumerate(view["sentence"]):
        first, last = sentence.split("; away from all tuples, ")
        away, ratio = view["away"][k][:3], view["ratio"][k][:3]
        panel, said, verdict = re.fullmatch(
            r"(.*) is the furthest off, at (\S+) .*\((.*)\)\.", last).groups()
        furthest = int(np.argmax(np.abs(away)))
        assert panel == phases.PANELS[furthest]
        check_ratio(said, verdict, away[furthest])
        if view["forgotten"][k] == 0:
            assert first == "Nothing is forgotten yet"
            continue
        look, change = first.split(": its s² ")
        panel, count = re.fullmatch(r"Look at (.*) on the (\d+) forgotten tuples", look).groups()
        change, said, verdict = re.fullmatch(r"(.*) (\S+) (?:of|times) .*\((.*)\)", change).groups()
        row = phases.PANELS.index(panel)
        assert int(count) == view["forgotten"][k]
        check_ratio(said, verdict, ratio[row])
        before = view["ratio"][k - 1] if k and view["forgotten"][k - 1] else [0.0] * 4
        changes = np.abs(np.array(ratio) - before[:3])
        assert changes[row] == changes.max()
        if change != "is":
            direction, old = re.fullmatch(r"(rose|fell) from (\S+) to", change).groups()
            assert value(old) == pytest.approx(np.exp(before[row]), rel=0.06)
            assert (direction == "rose") == (ratio[row] > before[row])


def test_the_page_is_one_small_file_that_loads_nothing(text):
    assert len(text.encode()) <= 800_000 and film.STILL.stat().st_size <= 200_000
    assert "@import" not in text and "url(" not in text and "<link" not in text
    assert all(source.startswith("data:image/png;") for source in re.findall(r'src="([^"]*)', text))
    script = (film.DOCS / "film.js").read_text(encoding="utf-8")
    assert script.count("\n") <= 200 and not re.search(r"fetch\(|XMLHttp|import\b", script)


# The page in a browser ----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def window(tmp_path_factory):
    if chromium.missing():
        pytest.skip(f"{chromium.missing()} is not installed")
    with chromium.browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture
def page(window):
    """Open the page with a query; at the end the console must be empty."""
    def load(query="", width=1280, **looks):
        window.size(width, 900, **looks)
        window.get(film.PAGE.as_uri() + query)
        return window

    yield load
    assert window.console() == []


def read(window, *names):
    """Texts of elements, by id."""
    return [window.run("return document.getElementById(arguments[0]).textContent", name)
            for name in names]


def maps(window):
    return [window.run(f"return document.getElementById('map-{panel}').toDataURL()")
            for panel in range(4)]


def phase(window):
    return int(window.run("return document.getElementById('phase').value"))


def check(window, numbers, name, k):
    """What the page shows is what was computed for phase k."""
    view = numbers["views"][name]
    assert read(window, "sentence") == [view["sentence"][k - 1]]
    assert int(window.run("return document.getElementById('phase').value")) == k
    for panel in range(4):
        ratio, away, forgotten, regret = read(window, f"ratio-{panel}", f"away-{panel}",
                                              f"forgotten-{panel}", f"regret-{panel}")
        for shown, known in ((ratio, view["ratio"]), (away, view["away"])):
            if known[k - 1][panel] is None:
                assert shown == "none yet"
            else:
                assert float(shown.replace("−", "-")) == known[k - 1][panel]
        assert int(forgotten) == (view["forgotten"][k - 1] if panel < 3 else 0)
        mean, error = regret.split(" ± ")
        at = k * phases.L // phases.EVERY - 1
        assert (float(mean), float(error)) == (view["regret"][panel][at], view["error"][panel][at])


def test_it_opens_at_the_first_phase_and_the_slider_changes_panels_and_numbers(page, numbers):
    window = page()
    check(window, numbers, "one-60", 1)
    first = maps(window)
    assert first[0] == first[3] and first[1] != first[3]     # nothing is forgotten yet
    window.run("const slider = document.getElementById('phase'); slider.value = 6;"
               "slider.dispatchEvent(new Event('input', {bubbles: true}))")
    check(window, numbers, "one-60", 6)
    later = maps(window)
    assert all(before != after for before, after in zip(first, later, strict=True))
    assert len(set(later)) == 4


def test_the_numbers_in_the_browser_are_those_of_nlts(page):
    window = page("?phase=2&contexts=moving&memory=30")
    frame = phases.replay("moving", 30, 0, 2)[1][1]
    shown = read(window, *[f"ratio-{panel}" for panel in range(4)])
    np.testing.assert_allclose([float(x.replace("−", "-")) for x in shown], frame["ratio"],
                               atol=0.0051)


@pytest.mark.parametrize("query, name, k", [
    ("?phase=5&contexts=moving&memory=30", "moving-30", 5), ("?phase=99", "one-60", 10),
    ("?memory=120&phase=0", "one-120", 1), ("?phase=x&contexts=%22%5D&memory=31", "one-60", 1)])
def test_a_link_opens_a_view(page, numbers, query, name, k):
    check(page(query), numbers, name, k)


def test_choices_of_contexts_and_memory(page, numbers):
    window = page("?phase=4")
    window.click("input[value=moving]")
    check(window, numbers, "moving-60", 4)
    window.click("input[value='120']")
    check(window, numbers, "moving-120", 4)
    window.press("right")                                    # a pointer leaves the keys to the film
    check(window, numbers, "moving-120", 5)
    link = window.run("return document.getElementById('link').href")
    window.get(link)
    check(window, numbers, "moving-120", 5)
    before = maps(window)
    window.click("#tuples")
    assert maps(window)[0] != before[0]


def test_the_keyboard(page, numbers):
    window = page("?memory=30")
    for keys, k in ((["right", "right"], 3), (["left"], 2), (["end"], 10), (["right"], 10),
                    (["home"], 1), (["left"], 1)):
        window.press(*keys)
        check(window, numbers, "one-30", k)
    window.press("tab", "tab", "right")                      # the slider has the focus
    check(window, numbers, "one-30", 2)


def test_space_and_the_button_play_and_pause(page):
    window = page("?phase=9")
    window.press("space")
    assert phase(window) == 10
    window.press("space", "space")                           # it ended, and starts again
    assert phase(window) in (1, 2)
    window.run("document.getElementById('play').click()")
    window.run("document.getElementById('play').click()")
    end = time.time() + 20
    start = phase(window)
    while phase(window) == start and time.time() < end:
        time.sleep(0.1)
    assert phase(window) == start + 1
    window.press("space")


def test_with_less_motion_a_phase_stays_longer(page):
    window = page(motion=False)
    window.press("space")
    start = phase(window)
    time.sleep(2)
    assert phase(window) == start
    window.press("space")


@pytest.mark.parametrize("width, dark", [(1280, False), (1280, True), (420, False), (420, True)])
def test_it_fits_phones_and_dark_screens(page, width, dark):
    window = page("?phase=5", width, dark=dark)
    assert window.run("return document.documentElement.scrollWidth") <= width
    color = window.run("return getComputedStyle(document.body).backgroundColor")
    assert (int(re.search(r"\d+", color)[0]) < 128) == dark


def test_what_a_screen_reader_finds(page):
    window = page("?phase=3&contexts=moving")
    unnamed = window.run("return [...document.querySelectorAll('input, button')].filter("
                         "part => !part.labels?.length && !part.textContent.trim()).length")
    assert unnamed == 0
    labels = window.run("return [...document.querySelectorAll('canvas')].map("
                        "canvas => canvas.getAttribute('aria-label'))")
    assert all(name in label for name, label in zip(phases.PANELS, labels, strict=True))
    assert window.run("return document.getElementById('sentence').ariaLive") == "polite"


def test_without_a_script_the_last_phase_is_a_picture(page, window):
    window.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        window.get(film.PAGE.as_uri())
        element = window.ask("element", {"using": "css selector", "value": "noscript img"})
        identifier = next(iter(element.values()))
        assert window.ask(f"element/{identifier}/rect")["width"] > 1000
        assert not window.ask(f"element/{hidden(window)}/displayed")
    finally:
        window.command("Emulation.setScriptExecutionDisabled", value=False)


def hidden(window):
    """The part of the page that needs a script."""
    element = window.ask("element", {"using": "css selector", "value": "#film"})
    return next(iter(element.values()))


def test_the_command_writes_page_and_picture_into_a_folder_of_ones_own(tmp_path, capsys):
    """Numbers that the program computed before are taken from the page that is there."""
    (tmp_path / film.PAGE.name).write_bytes(film.PAGE.read_bytes())
    experiments.main(["film", "--out", str(tmp_path)])
    written = (tmp_path / film.PAGE.name).read_text(encoding="utf-8")
    assert film.stored(written) == film.stored(film.PAGE.read_text(encoding="utf-8"))
    assert (tmp_path / film.STILL.name).read_bytes().startswith(b"\x89PNG")
    assert "kB" in capsys.readouterr().out
