"""docs/reading.html: complete, up to date, right in its numbers, one file. In a browser:
tests/test_pages.py."""
import html
import re
import sys
import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from test_planted import agents, core, with_bug

from docs import film, reading, tiny

HERE = Path(__file__).parent.parent
SOURCE = (HERE / "nlts.py").read_text()
LINES = SOURCE.split("\n")
HUNTS = tomllib.loads((HERE / "classroom" / "hunts.toml").read_text(encoding="utf-8"))
PAPER = {f"[1.{k}]" for k in range(1, 7)} | {f"[2.{k}]" for k in range(1, 25)}
PAPER |= {f"Eq. {k}" for k in range(1, 9)}
PAGE = HERE / "docs" / "reading.html"


@pytest.fixture(scope="module")
def text():
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def ids(text):
    return re.findall(r' id="([^"]*)"', text)


def test_the_page_and_its_drawing_are_up_to_date_and_need_no_latex_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "latex2mathml", None)
    for name, built in reading.build().items():              # colors depend on Pygments' version
        there = (PAGE.parent / name).read_text(encoding="utf-8")
        assert re.sub("</?span[^>]*>", "", built) == re.sub("</?span[^>]*>", "", there), name


def test_the_page_is_one_file_that_loads_nothing(text, ids):
    assert len(ids) == len(set(ids)) and len(text.encode()) < 800_000
    assert "<script" not in text and "@import" not in text and "url(" not in text
    png, = re.findall(r'src="data:image/png;base64,([^"]*)', text)
    assert png == film.contents(film.PAGE.read_text(encoding="utf-8"))[1]
    for link in re.findall('href="([^"]*)"', text):
        file, _, place = link.partition("#")
        assert (PAGE.parent / file).exists() if file else place in ids, link


# Tags and lines -----------------------------------------------------------------------------------

def test_every_line_and_equation_has_code_every_tag_a_line_and_every_why_its_place(ids):
    assert set().union(*reading.tag_lines(SOURCE).values()) == PAPER
    assert sorted(item["tag"] for item in reading.printed()["item"]) == sorted(PAPER)
    beside = PAPER | {f"why {item['part']}" for item in reading.printed()["why"]}
    assert {reading.anchor(tag) for tag in beside} <= set(ids)


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
    assert ["Φ<sup>0</sup>, B<sup>0</sup>", "Phi0", "(g, g)", "prior precision, times nu2"] in rows
    assert rows[-1][1:3] == ["S", "(g, g)"] and all(row[3] for row in rows)


# Errata, wrong lines ------------------------------------------------------------------------------

def test_errata_open_in_place_and_name_a_test(text):
    for item in reading.printed()["item"]:
        assert ("right" in item) == bool(item["errata"]) == ("why" in item), item["tag"]
        for number, erratum in item["errata"].items():
            assert f"<summary>Erratum {number}:" in text and erratum["right"] in text
            assert "::test_" in erratum["tests"], number


def hunted():
    """{name of a bug hunt: the number of its line}."""
    found = reading.hunts(SOURCE, {name: name for name in HUNTS})
    return {bug["test"]: number for number, bugs in found.items() for bug in bugs}


def test_each_bug_hunt_is_at_its_line(text):
    assert set(hunted()) == set(HUNTS) and text.count("What if this line") == len(HUNTS)
    for name, number in hunted().items():
        below = text.partition(f'<code id="L{number}"')[2].partition("<code id")[0]
        assert f"Noticed by <code>{reading.printed()['noticed'][name]}</code>" in below


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", HUNTS)
def test_the_test_that_is_named_notices_the_bug(name):
    bug, test, line = HUNTS[name], reading.printed()["noticed"][name], LINES[hunted()[name] - 1]
    check = getattr(core, test, None) or getattr(agents, test)
    for mark in getattr(check, "pytestmark", []):            # of parameters the first
        check = partial(check, **{mark.args[0]: mark.args[1][0]})
    broken = with_bug("nlts.py", line, line.replace(bug["right"], bug["wrong"]))
    with pytest.raises(AssertionError):
        check(nlts=broken)


def test_measured_changes_are_differences_of_means():
    run = {"dataset": "adult", "algorithm": "both-priors"}
    runs = [run | {"reward": 10}, run | {"reward": 12}, run | {"reward": 4, "variant": "worse"},
            run | {"reward": 4, "variant": "worse"}, run | {"algorithm": "carried", "reward": 0}]
    assert reading.ablation(runs, "worse") == [("Adult", "11 ± 1", "-7 ± 1", 2)]


# The tiny run -------------------------------------------------------------------------------------

def compare(text, expected):
    """The numbers that the page shows under a name beside a step are those expected."""
    for (tag, name), value in expected.items():
        card = text.partition(f'<div class="card" id="{reading.anchor(tag)}"')[2]
        values = re.search(r'<pre class="values">(.*?)</pre>', card, re.DOTALL)[1]
        rows = re.search(rf"^{re.escape(name)} = (.*(?:\n .*)*)", values, re.MULTILINE)[1]
        shown = [[float(x) for x in re.findall(r"-?[\d.]+", row)] for row in rows.split("\n")]
        np.testing.assert_allclose(np.squeeze(shown), value, atol=0.51e-4, err_msg=name)


@pytest.fixture(scope="module")
def run():
    """The tiny run, features and rewards by hand, tuples of arm 0: all, in the buffer, gone."""
    run = tiny.play()
    phi = np.array([[b[0], b[1], max(b[0] - b[1], 0)] for b in tiny.CONTEXTS])
    r = np.array([tiny.CONTEXTS[t][run["played"][t]] for t in range(6)])
    mine, kept = np.equal(run["played"], 0), np.array(run["kept"])
    assert (mine & kept).sum() == (mine & ~kept).sum() == 2
    return run | {"phi": phi, "r": r, "mine": mine, "in": mine & kept, "gone": mine & ~kept}


def test_values_up_to_the_learning_phase_by_hand(text, run):
    phi, E, r = run["phi"], run["phi"][run["mine"]], run["r"][run["mine"]]
    precision, f = 0.25 * np.eye(3) + E.T @ E, E.T @ r
    mu_hat = np.linalg.inv(precision) @ f
    scores = run["mu_tilde"] @ phi[-1]
    compare(text, {
        ("[2.4]", "phi(6)"): phi[-1], ("[2.13]", "Phi0 + Phi"): precision, ("[2.13]", "f"): f,
        ("[2.14]", "mu_hat"): mu_hat, ("[2.15]", "a"): 6 + 4 / 2, ("[2.16]", "R2"): r @ r,
        ("[2.17]", "b"): 6 + (r @ r - mu_hat @ f) / 2, ("[2.8]", "phi' mu_tilde"): scores,
        ("beside BayesianLinearRegression.s2", "s2"):
            np.diag(phi @ np.linalg.inv(precision) @ phi.T),
        ("[2.7]", "mu_tilde of arm 1"): run["mu_tilde"][1], ("[2.8]", "a(6)"): np.argmax(scores)})


def test_values_of_the_learning_phase_by_hand(text, run):
    E_gone, E_old, E_new = run["phi"][run["gone"]], run["phi"][run["in"]], run["E_new"]
    r_gone, r = run["r"][run["gone"]], run["r"][run["in"]]
    Phi_old = 0.25 * np.eye(3) + E_gone.T @ E_gone
    mu_old = np.linalg.solve(Phi_old, E_gone.T @ r_gone)
    s2 = np.diag(E_old @ np.linalg.inv(Phi_old) @ E_old.T)
    Phi0, mu0, S = run["after"].Phi0, run["after"].mu0, np.linalg.inv(run["after"].Phi0)
    precision = Phi0 + E_new.T @ E_new
    without = "beside BayesianLinearRegression.without"
    compare(text, {
        (without, "Phi_old"): Phi_old, (without, "mu_old"): mu_old, (without, "a_old"): 6 + 2 / 2,
        (without, "b_old"): 6 + (r_gone @ r_gone - mu_old @ Phi_old @ mu_old) / 2,
        ("[2.18]", "E_old"): E_old, ("[2.22]", "s2"): s2, ("[2.22]", "S"): S,
        ("[2.24]", "Phi0 + Phi"): precision, ("[2.24]", "a"): 8,
        ("[2.24]", "mu_hat"): np.linalg.solve(precision, Phi0 @ mu0 + E_new.T @ r)})
    np.testing.assert_allclose(np.diag(E_new @ S @ E_new.T), s2, rtol=0.01)
    w, norm2 = np.linalg.eigvalsh(S), (E_new ** 2).sum(1)    # one was raised, others were not
    assert w[0] == pytest.approx(0.01 * (norm2 @ s2) / (norm2 @ norm2)) and w[1] > 2 * w[0]
