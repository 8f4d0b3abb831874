"""docs/reading.html: complete, up to date, right in its numbers, one sound file."""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from docs import reading, tiny

HERE = Path(__file__).parent.parent
SOURCE = (HERE / "nlts.py").read_text()
PAPER = {f"[1.{k}]" for k in range(1, 7)} | {f"[2.{k}]" for k in range(1, 25)}
PAPER |= {f"Eq. {k}" for k in range(1, 9)}
VOID = {"meta", "br", "img"}


class Page(HTMLParser):
    """The page's identifiers, links, texts of lines of code, and values."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.lines, self.values = [], [], [], {}, {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_startendtag(self, name, attributes):
        pass

    def handle_starttag(self, name, attributes):
        attributes = dict(attributes)
        if name not in VOID:
            self.open.append((name, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self.links += [attributes[key] for key in ("href", "src") if key in attributes]

    def handle_endtag(self, name):
        assert self.open.pop()[0] == name

    def handle_data(self, text):
        if ("class", "n") in [item for _, attributes in self.open for item in attributes.items()]:
            return
        for name, attributes in self.open:
            if name == "code" and "id" in attributes:
                number = int(attributes["id"][1:])
                self.lines[number] = self.lines.get(number, "") + text
            if attributes.get("class") == "values":
                card = next(found["id"] for _, found in self.open if found.get("class") == "card")
                self.values[card] = self.values.get(card, "") + text


@pytest.fixture(scope="module")
def text():
    return reading.PAGE.read_text()


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def compared(text):
    """Without the colors, which depend on the version of Pygments, and without the picture."""
    return re.sub(r"</?span[^>]*>|data:image[^\"]*", "", text)


def test_the_page_is_up_to_date_and_needs_no_latex_library(text, monkeypatch):
    monkeypatch.setitem(sys.modules, "latex2mathml", None)
    built, _ = reading.build()
    assert compared(built) == compared(text), "nlts.py or the paper's side changed: make reading"


def differences(source):
    """Tags of the paper without code, and tags in the code that the paper does not have."""
    tags = set().union(*reading.tag_lines(source).values())
    return PAPER - tags, tags - PAPER


def test_every_line_and_equation_has_code_and_every_tag_a_line(page):
    assert differences(SOURCE) == (set(), set())
    items = [item["tag"] for item in reading.printed()["item"]]
    assert sorted(items) == sorted(PAPER)
    assert {reading.anchor(tag) for tag in PAPER} <= set(page.ids)


@pytest.mark.parametrize("tag", sorted(tag for tag in PAPER if tag[0] != "E"))
def test_a_tag_that_is_taken_out_is_missed(tag):
    assert differences(SOURCE.replace(tag, "")) == ({tag}, set())


def test_a_tag_that_the_paper_lacks_is_found():
    assert differences(SOURCE.replace("# [2.24]", "# [2.24] [2.25]")) == (set(), {"[2.25]"})


def test_a_tag_holds_for_its_statement_or_for_the_head_of_a_function():
    source = ('def f(x):\n    """Eq. 2: all."""\n    a = 1  # [1.1]\n    b = (a,\n         x)\n'
              '    c = [a,  # [2.2]\n         b]\n    return c\n')
    assert reading.tag_lines(source) == {1: ["Eq. 2"], 2: ["Eq. 2"], 3: ["[1.1]"],
                                         6: ["[2.2]"], 7: ["[2.2]"]}


def test_every_line_of_the_code_is_there_once(page):
    headings = {number for number, line in enumerate(SOURCE.split("\n"), 1)
                if reading.SECTION.match(line)}
    for number, line in enumerate(SOURCE.split("\n"), 1):
        if line.strip():
            assert page.ids.count(f"L{number}") == 1
            assert number in headings or page.lines[number] == line + "\n"


def test_each_reading_that_differs_names_a_test_that_exists():
    files = [HERE / "test_nlts.py", *HERE.glob("tests/test_*.py")]
    there = {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}
    for item in reading.printed()["item"]:
        assert ("right" in item) == ("errata" in item) == ("why" in item), item["tag"]
        for number, tests in item.get("errata", {}).items():
            assert tests and set(tests) <= there, number


def test_the_page_is_one_sound_file_that_loads_nothing(page, text):
    assert len(page.ids) == len(set(page.ids))
    assert "<script" not in text and "@import" not in text and "url(" not in text
    assert len(re.sub(r"data:image[^\"]*", "", text).encode()) < 400_000
    for link in page.links:
        file, _, place = link.partition("#")
        if file.startswith("data:image"):
            continue
        if file:
            assert (HERE / "docs" / file).exists(), link
        else:
            assert place in page.ids, link


def shown(page, tag, name):
    """The numbers that the page shows under a name beside a step."""
    lines = page.values[reading.anchor(tag)].split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith(f"{name} = "))
    rows = [lines[first].split(" = ", 1)[1]]
    for line in lines[first + 1:]:
        if not line.startswith(" "):
            break
        rows.append(line)
    numbers = [[float(x) for x in re.findall(r"-?[\d.]+", row)] for row in rows]
    return np.squeeze(numbers)


def close(x, y):
    np.testing.assert_allclose(x, y, atol=0.51e-4)


def test_values_up_to_the_learning_phase_by_hand(page):
    run = tiny.play()
    mine = [t for t in range(6) if run["played"][t] == 0]
    phi = np.array([[b[0], b[1], max(b[0] - b[1], 0)] for b in tiny.CONTEXTS])
    r = np.array([tiny.CONTEXTS[t][run["played"][t]] for t in range(6)])
    Phi0, Phi, f, R2 = 0.25 * np.eye(3), np.zeros((3, 3)), np.zeros(3), 0.0
    for t in mine:
        Phi, f, R2 = Phi + np.outer(phi[t], phi[t]), f + phi[t] * r[t], R2 + r[t] ** 2
    mu_hat = np.linalg.inv(Phi0 + Phi) @ f
    assert len(run["phi"]) == 6 and len(mine) == 4 and run["kept"].count(True) == 4
    close(shown(page, "[2.4]", "phi(6)"), phi[-1])
    close(shown(page, "[2.13]", "Phi0 + Phi"), Phi0 + Phi)
    close(shown(page, "[2.13]", "f"), f)
    close(shown(page, "[2.14]", "mu_hat"), mu_hat)
    close(shown(page, "[2.15]", "a"), 6 + len(mine) / 2)
    close(shown(page, "[2.16]", "R2"), R2)
    close(shown(page, "[2.17]", "b"), 6 + (R2 - mu_hat @ (Phi0 + Phi) @ mu_hat) / 2)
    samples = [shown(page, "[2.7]", "mu_tilde"), shown(page, "[2.7]", "mu_tilde of arm 1")]
    np.testing.assert_allclose(shown(page, "[2.8]", "phi' mu_tilde"), samples @ phi[-1], atol=5e-4)
    assert shown(page, "[2.8]", "a(6)") == np.argmax(shown(page, "[2.8]", "phi' mu_tilde"))


def test_values_of_the_learning_phase_by_hand(page):
    run = tiny.play()
    mine = [t for t in range(6) if run["played"][t] == 0]
    kept = [t for t in mine if run["kept"][t]]
    gone = run["phi"][[t for t in mine if not run["kept"][t]]]
    Phi_old = 0.25 * np.eye(3) + gone.T @ gone
    E_old = run["phi"][kept]
    s2 = np.diag(E_old @ np.linalg.inv(Phi_old) @ E_old.T)
    close(shown(page, "[2.18]", "E_old"), E_old)
    close(shown(page, "[2.22]", "Phi_old"), Phi_old)
    close(shown(page, "[2.22]", "s2"), s2)
    E_new, S = run["E_new"], np.linalg.inv(run["after"].Phi0)
    close(shown(page, "[2.21]", "E_new"), E_new)
    close(shown(page, "[2.22]", "S"), S)
    np.testing.assert_allclose(shown(page, "[2.22]", "phi' S phi"), s2, rtol=0.01)
    mu0, r = shown(page, "[2.23]", "mu0"), [run["rewards"][t] for t in kept]
    Phi0 = np.linalg.inv(S)
    close(shown(page, "[2.24]", "Phi0 + Phi"), Phi0 + E_new.T @ E_new)
    mu_hat = np.linalg.inv(Phi0 + E_new.T @ E_new) @ (Phi0 @ mu0 + E_new.T @ r)
    np.testing.assert_allclose(shown(page, "[2.24]", "mu_hat"), mu_hat, atol=1e-3)
    close(shown(page, "[2.24]", "a"), 8)


def test_values_of_what_was_forgotten_by_hand(page):
    run = tiny.play()
    gone = [t for t in range(6) if run["played"][t] == 0 and not run["kept"][t]]
    E, r = run["phi"][gone], np.array(run["rewards"])[gone]
    Phi_old = 0.25 * np.eye(3) + E.T @ E
    mu_old = np.linalg.solve(Phi_old, E.T @ r)
    card = "beside BayesianLinearRegression.without"
    assert len(gone) == 2
    close(shown(page, card, "Phi_old"), Phi_old)
    close(shown(page, card, "mu_old"), mu_old)
    close(shown(page, card, "a_old"), 6 + len(gone) / 2)
    close(shown(page, card, "b_old"), 6 + (r @ r - mu_old @ Phi_old @ mu_old) / 2)


def test_values_of_the_variance_and_of_the_solver_by_hand(page):
    run = tiny.play()
    B = shown(page, "[2.13]", "Phi0 + Phi")
    s2 = np.diag(run["phi"] @ np.linalg.inv(B) @ run["phi"].T)
    close(shown(page, "beside BayesianLinearRegression.variance", "s2"), s2)
    s2 = shown(page, "[2.22]", "s2")
    close(shown(page, "beside match_covariance", "s2"), s2)
    norm2 = (run["E_new"] ** 2).sum(1)
    least = 0.01 * (norm2 @ s2) / (norm2 @ norm2)
    w = shown(page, "beside match_covariance", "eigenvalues of S")
    close(shown(page, "beside match_covariance", "least"), least)
    close(w, np.linalg.eigvalsh(run["S"]))
    close(w.min(), least)                                    # one was raised, others were not
    assert w.max() > 10 * least


def test_what_stands_beside_a_part_is_there(page):
    parts = [card["part"] for card in reading.printed()["beside"]]
    assert set(parts) <= set(reading.part_ends(SOURCE))
    assert {reading.anchor(f"beside {part}") for part in parts} <= set(page.ids)


def section(text, title):
    """The page from a heading to the next."""
    return re.search(rf'<h2 id="L\d+">{re.escape(title)}.*?(?=<h2|</main>)', text, re.DOTALL)[0]


def test_sections_begin_with_the_film_and_the_drawing_and_end_with_the_plumbing(text):
    before_code = section(text, "Sec. 3, 4").partition('class="row"')[0]
    assert 'href="forgetting.html"' in before_code
    drawing = section(text, "Appendix A").partition('class="row"')[0]
    assert [move in drawing for move in ("1 · out", "2 · carry", "3 · back")] == [True] * 3
    assert drawing.count("<svg") == drawing.count('role="img" aria-label=') == 3
    plumbing = section(text, "Plumbing")
    assert plumbing.count("<details>") == 1 and 'class="row"' not in plumbing
    assert text.index(plumbing) > text.index(section(text, "Sec. 4.3"))
