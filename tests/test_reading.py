"""docs/reading.html: complete, up to date, right in its numbers, one sound file."""
import base64
import html
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import browser as chromium
import numpy as np
import pytest

from docs import reading, tiny

HERE = Path(__file__).parent.parent
SOURCE = (HERE / "nlts.py").read_text()
LINES = SOURCE.split("\n")
HUNTS = tomllib.loads((HERE / "classroom" / "hunts.toml").read_text(encoding="utf-8"))
PAPER = {f"[1.{k}]" for k in range(1, 7)} | {f"[2.{k}]" for k in range(1, 25)}
PAPER |= {f"Eq. {k}" for k in range(1, 9)}


@pytest.fixture(scope="module")
def text():
    return reading.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def ids(text):
    return re.findall(r' id="([^"]*)"', text)


def compared(text):
    """Without the colors, which depend on the version of Pygments."""
    return re.sub(r"</?span[^>]*>", "", text)


def test_the_page_is_up_to_date_and_needs_no_latex_library(text, monkeypatch):
    monkeypatch.setitem(sys.modules, "latex2mathml", None)
    built, _ = reading.build()
    assert compared(built) == compared(text), "nlts.py or the paper's side changed: make reading"


def test_the_picture_is_the_one_in_figures(text):
    png, = re.findall(r'data:image/png;base64,([^"]*)', text)
    assert base64.b64decode(png) == (HERE / "figures" / "picture.png").read_bytes()


def test_the_page_is_one_file_that_loads_nothing(text, ids):
    assert len(ids) == len(set(ids)) and len(text.encode()) < 800_000
    assert "<script" not in text and "@import" not in text and "url(" not in text
    for link in re.findall(r'(?:href|src)="([^"]*)"', text):
        file, _, place = link.partition("#")
        assert file.startswith("data:image") or (HERE / "docs" / file).exists(), link
        assert file or place in ids, link


# Tags and lines -----------------------------------------------------------------------------------

def differences(source):
    """Tags of the paper without code, and tags in the code that the paper does not have."""
    tags = set().union(*reading.tag_lines(source).values())
    return PAPER - tags, tags - PAPER


def test_every_line_and_equation_has_code_and_every_tag_a_line(ids):
    assert differences(SOURCE) == (set(), set())
    assert differences(SOURCE.replace("# [2.24]", "# [2.25]")) == ({"[2.24]"}, {"[2.25]"})
    items = [item["tag"] for item in reading.printed()["item"]]
    assert sorted(items) == sorted(PAPER)
    assert {reading.anchor(tag) for tag in PAPER} <= set(ids)


def test_a_tag_holds_for_its_statement_or_the_one_below_or_the_head_of_a_function():
    source = ('def f(x):\n    """Eq. 2: all."""\n    a = 1  # [1.1]\n    b = (a,\n         x)\n'
              '    c = [a,  # [2.2]\n         b]\n    # [2.3] too\n    d = c\n    return d\n')
    assert reading.tag_lines(source) == {
        1: ["Eq. 2"], 2: ["Eq. 2"], 3: ["[1.1]"], 6: ["[2.2]"], 7: ["[2.2]"], 8: ["[2.3]"],
        9: ["[2.3]"]}


def test_every_line_of_the_code_is_there_and_links_to_itself(text):
    shown = re.findall(r'<code id="L(\d+)".*?\nhref="#L\1">\1</a>(.*?)\n</code>', text)
    shown = {int(number): html.unescape(re.sub("<.*?>", "", line)) for number, line in shown}
    for number, line in enumerate(LINES, 1):
        assert not line or reading.SECTION.match(line) or shown[number] == line


def test_the_notation_is_a_table():
    rows = reading.notation(SOURCE)
    assert rows[0] == ["d, g, N", "", "", "sizes: of contexts, of features, number of arms"]
    assert ["Φ<sup>0</sup>, B<sup>0</sup>", "Phi0", "(g, g)", "prior precision, times nu2"] in rows
    assert rows[-1][1:3] == ["S", "(g, g)"] and all(row[3] for row in rows)


# Why, errata, wrong lines -------------------------------------------------------------------------

def test_each_step_says_why(ids):
    parts = [item["part"] for item in reading.printed()["why"]]
    assert {"BayesianLinearRegression", "BayesianLinearRegression.update", "train", "match_mean",
            "NeuralLinearTS.update", "ReplayBuffer", "match_covariance_sdp", "match_covariance",
            "invertible_prior", "NeuralLinearTS", "NeuralLinearTS.learn"} == set(parts)
    assert {reading.anchor(f"why {part}") for part in parts} <= set(ids)
    beside = [card["part"] for card in reading.printed()["beside"]]
    assert set(parts + beside) <= set(reading.part_ends(SOURCE))


def tests_of_the_project():
    files = [HERE / "test_nlts.py", *HERE.glob("tests/test_*.py")]
    return {name: file for file in files
            for name in re.findall(r"def (test_\w+)", file.read_text())}


def test_errata_open_in_place_and_name_a_test_that_exists(text):
    for item in reading.printed()["item"]:
        assert ("right" in item) == bool(item["errata"]) == ("why" in item), item["tag"]
        for number, erratum in item["errata"].items():
            assert f"<summary>Erratum {number}:" in text and erratum["right"] in text
            tests = re.findall(r"::(test_\w+)", erratum["tests"])
            assert tests and set(tests) <= set(tests_of_the_project()), number


def test_each_bug_hunt_is_at_its_line(text):
    noticed = reading.printed()["noticed"]
    assert set(noticed) == set(HUNTS) and set(noticed.values()) <= set(tests_of_the_project())
    found = reading.hunts(SOURCE, noticed)
    assert sum(map(len, found.values())) == len(HUNTS) == text.count("What if this line")
    assert all(bug["right"] in LINES[number - 1] for number, bugs in found.items() for bug in bugs)


@pytest.mark.slow
@pytest.mark.parametrize("name", HUNTS)
def test_the_test_that_is_named_notices_the_bug(name, tmp_path):
    bug, test = HUNTS[name], reading.printed()["noticed"][name]
    number = next(number for number, bugs in reading.hunts(SOURCE, {n: n for n in HUNTS}).items()
                  if name in [found["test"] for found in bugs])
    lines = [*LINES]
    lines[number - 1] = lines[number - 1].replace(bug["right"], bug["wrong"])
    for file in [*HERE.glob("*.py"), HERE / "pyproject.toml"]:
        shutil.copy(file, tmp_path)
    for folder in ("tests", "lab", "studies", "docs", "classroom"):
        shutil.copytree(HERE / folder, tmp_path / folder)
    (tmp_path / "nlts.py").write_text("\n".join(lines))
    file = tests_of_the_project()[test].relative_to(HERE)
    command = [sys.executable, "-m", "pytest", "-q", "-x", str(file), "-k", test]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1, run.stdout[-2000:]           # a test failed, and nothing else


def test_measured_changes_are_differences_of_means():
    run = {"dataset": "adult", "algorithm": "both-priors"}
    runs = [run | {"reward": 10}, run | {"reward": 12}, run | {"reward": 4, "variant": "worse"},
            run | {"reward": 4, "variant": "worse"}, run | {"algorithm": "carried", "reward": 0}]
    assert reading.ablation(runs, "worse") == [("Adult", "11 ± 1", "-7 ± 1")]


# The tiny run -------------------------------------------------------------------------------------

def shown(text, tag, name):
    """The numbers that the page shows under a name beside a step."""
    card = text.partition(f'<div class="card" id="{reading.anchor(tag)}"')[2]
    values = re.search(r'<pre class="values">(.*?)</pre>', card, re.DOTALL)[1]
    rows = re.search(rf"^{re.escape(name)} = (.*(?:\n .*)*)", values, re.MULTILINE)[1].split("\n")
    return np.squeeze([[float(x) for x in re.findall(r"-?[\d.]+", row)] for row in rows])


def close(x, y):
    np.testing.assert_allclose(x, y, atol=0.51e-4)


@pytest.fixture(scope="module")
def run():
    """The tiny run, with rows of arm 0: all, in the buffer, forgotten."""
    run = tiny.play()
    mine = [t for t in range(6) if run["played"][t] == 0]
    kept = [t for t in mine if run["kept"][t]]
    gone = [t for t in mine if not run["kept"][t]]
    assert (len(mine), len(kept), len(gone)) == (4, 2, 2)
    phi = np.array([[b[0], b[1], max(b[0] - b[1], 0)] for b in tiny.CONTEXTS])
    r = np.array([tiny.CONTEXTS[t][run["played"][t]] for t in range(6)])
    return run | {"mine": mine, "kept": kept, "gone": gone, "phi": phi, "r": r}


def test_values_up_to_the_learning_phase_by_hand(text, run):
    E, r = run["phi"][run["mine"]], run["r"][run["mine"]]
    precision, f = 0.25 * np.eye(3) + E.T @ E, E.T @ r
    mu_hat = np.linalg.inv(precision) @ f
    for tag, name, value in (
            ("[2.4]", "phi(6)", run["phi"][-1]), ("[2.13]", "Phi0 + Phi", precision),
            ("[2.13]", "f", f), ("[2.14]", "mu_hat", mu_hat), ("[2.15]", "a", 6 + 4 / 2),
            ("[2.16]", "R2", r @ r), ("[2.17]", "b", 6 + (r @ r - mu_hat @ f) / 2)):
        close(shown(text, tag, name), value)
    s2 = np.diag(run["phi"] @ np.linalg.inv(precision) @ run["phi"].T)
    close(shown(text, "beside BayesianLinearRegression.s2", "s2"), s2)
    samples = [shown(text, "[2.7]", "mu_tilde"), shown(text, "[2.7]", "mu_tilde of arm 1")]
    scores = shown(text, "[2.8]", "phi' mu_tilde")
    np.testing.assert_allclose(scores, samples @ run["phi"][-1], atol=5e-4)
    assert shown(text, "[2.8]", "a(6)") == np.argmax(scores)


def test_values_of_the_learning_phase_by_hand(text, run):
    gone, r = run["phi"][run["gone"]], run["r"][run["gone"]]
    Phi_old = 0.25 * np.eye(3) + gone.T @ gone
    mu_old = np.linalg.solve(Phi_old, gone.T @ r)
    card = "beside BayesianLinearRegression.without"
    close(shown(text, card, "Phi_old"), Phi_old)
    close(shown(text, card, "mu_old"), mu_old)
    close(shown(text, card, "a_old"), 6 + 2 / 2)
    close(shown(text, card, "b_old"), 6 + (r @ r - mu_old @ Phi_old @ mu_old) / 2)
    E_old, E_new, S = run["phi"][run["kept"]], run["E_new"], np.linalg.inv(run["after"].Phi0)
    s2 = np.diag(E_old @ np.linalg.inv(Phi_old) @ E_old.T)
    for tag, name, value in (("[2.18]", "E_old", E_old), ("[2.22]", "Phi_old", Phi_old),
                             ("[2.22]", "s2", s2), ("[2.21]", "E_new", E_new), ("[2.22]", "S", S)):
        close(shown(text, tag, name), value)
    np.testing.assert_allclose(shown(text, "[2.22]", "phi' S phi"), s2, rtol=0.01)
    mu0, r = shown(text, "[2.23]", "mu0"), run["r"][run["kept"]]
    Phi0 = np.linalg.inv(S)
    close(shown(text, "[2.24]", "Phi0 + Phi"), Phi0 + E_new.T @ E_new)
    mu_hat = np.linalg.inv(Phi0 + E_new.T @ E_new) @ (Phi0 @ mu0 + E_new.T @ r)
    np.testing.assert_allclose(shown(text, "[2.24]", "mu_hat"), mu_hat, atol=1e-3)
    close(shown(text, "[2.24]", "a"), 8)
    w = shown(text, "beside match_covariance", "eigenvalues of S")
    norm2 = (E_new ** 2).sum(1)
    close(w, np.linalg.eigvalsh(S))
    close(w.min(), 0.01 * (norm2 @ s2) / (norm2 @ norm2))    # one was raised, others were not
    assert w.max() > 10 * w.min()


def test_reasons_have_numbers_of_the_tiny_run(text, run):
    why = re.search(r'id="why-match_covariance".*?</div>', text, re.DOTALL)[0]
    for diagonal in (run["forgotten"].precision.diagonal(), run["after"].precision.diagonal()):
        assert tiny.show(diagonal) in why
    assert tiny.show(1 / run["w"][0]) in why and run["after"].precision.max() > 170


# In a browser -------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with chromium.browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


def opened(window, width, **looks):
    window.size(width, 900, **looks)
    window.get(reading.PAGE.as_uri())
    return window


@pytest.mark.slow
@pytest.mark.parametrize("width, dark, columns", [
    (1280, False, 2), (1280, True, 2), (1000, False, 2), (400, True, 1)])
def test_it_fits_and_can_be_read(window, width, dark, columns):
    opened(window, width, dark=dark)
    assert window.run("return document.documentElement.scrollWidth") <= width
    assert window.contrast() >= 4.5
    row = window.run("return getComputedStyle(document.querySelector('.row')).gridTemplateColumns")
    assert len(row.split()) == columns
    window.run("location.hash = 'line-2-14'")
    assert window.run("return document.querySelector('nav').getBoundingClientRect().top") == 0
    top = window.run("return document.getElementById('line-2-14').getBoundingClientRect().top")
    bottom = window.run("return document.querySelector('nav').getBoundingClientRect().bottom")
    assert bottom <= top < 900                               # not hidden by the navigation
    assert window.console() == []


@pytest.mark.slow
def test_printed_no_line_of_code_is_lost(window):
    opened(window, 1123, media="print")
    hidden = window.run("return [...document.querySelectorAll('code[id]')].filter("
                        "line => !line.getClientRects().length).length")
    assert hidden == 0
    assert window.run("return document.documentElement.scrollWidth") <= 1123


@pytest.mark.slow
def test_the_keyboard_skips_to_the_content_and_lights_up_a_partner(window):
    opened(window, 1280)
    window.press("tab")
    assert window.run("return document.activeElement.hash") == "#main"
    line = "document.querySelector('li[data-t=line-2-14]')"
    color = f"return getComputedStyle({line}).backgroundColor"
    before = window.run(color)
    window.run("document.querySelector('.card[id=line-2-14] a').focus()")
    assert window.run(color) != before
