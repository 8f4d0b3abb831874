"""docs/reading.html: the paper and nlts.py side by side, joined by the tags in nlts.py.

`python -m docs.reading` builds it from nlts.py, docs/formulas.toml (what the paper prints, why),
docs/errata.md, classroom/hunts.toml, the last phase of docs/forgetting.html, and
docs/reading.in.html, a Jinja template that has all the HTML. Formulas are kept as MathML in
docs/mathml.json: latex2mathml is needed only if one changes.
"""
import ast
import html
import json
import re
import tomllib
from pathlib import Path

import jinja2
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from docs import film, tiny
from lab.report import plus_minus, title, with_error
from lab.results import read
from lab.statistics import difference, grouped, mean_and_error

HERE = Path(__file__).parent.parent
DOCS = HERE / "docs"
TAG = re.compile(r"\[[12]\.\d+\]|Eq\. \d")
GREEK = {"Phi": "Φ", "phi": "φ", "mu-hat": "μ̂", "mu-tilde": "μ̃", "mu": "μ", "nu": "ν", "'": "ᵀ"}
SECTION = re.compile(r"# (.*?): (.*?)(?: and .*| from .*)? -{5,}$")


def anchor(tag):
    """The id of a card: of [2.14] 'line-2-14', of Eq. 6 'eq-6', of 'why train' 'why-train'."""
    text = tag.strip("]").replace("Eq. ", "eq-").replace("[", "line-")
    return text.replace(".", "-").replace(" ", "-")


# The code's side ----------------------------------------------------------------------------------

def part_ends(source):
    """{name: last line} of the parts of nlts.py, which leave no line out: functions, methods and
    what is between them. A class begins with its first method; all plumbing is one part."""
    header, *others = ast.parse(source.partition("\n# Plumbing")[0]).body
    ends = {"header": header.end_lineno}
    for node in others:
        if isinstance(node, ast.ClassDef):
            first, *methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            ends[node.name] = first.end_lineno
            ends |= {f"{node.name}.{method.name}": method.end_lineno for method in methods}
        else:
            ends[getattr(node, "name", "imports")] = node.end_lineno
    return ends | {"plumbing": source.count("\n")}


def parts_of(source, joined):
    """The parts of nlts.py: `section` matches a heading that starts here, `code` is the first line
    below it, `doc` matches a docstring's first sentence, `tags` are from `tag_lines`."""
    lines, parts, first = source.split("\n"), [], 1
    for name, last in part_ends(source).items():
        filled = [number for number in range(first, last + 1) if lines[number - 1].strip()]
        section = SECTION.match(lines[filled[0] - 1])
        text = "\n".join(lines[first - 1:last])
        doc = re.search(r'"""(.*?)(\.\s+(?=[A-Z])|\.?""")', text, re.DOTALL)
        tags = sorted({tag for line in filled for tag in joined.get(line, [])})
        parts.append({"name": name, "first": filled[0], "last": last, "section": section,
                      "doc": doc, "tags": tags, "code": filled[bool(section)]})
        first = last + 1
    return parts


def tag_lines(source):
    """{line of nlts.py: its tags}, down to the plumbing. A tag in a comment holds for the statement
    that it ends or stands above, one in a function's head, docstring included, for the head."""
    source = source.partition("\n# Plumbing")[0]
    lines, joined = source.split("\n"), {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        first = node.lineno
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            last = node.body[0].end_lineno
            texts = lines[first - 1:last]
        else:
            while lines[first - 2].strip().startswith("#"):
                first -= 1
            last = node.body[0].lineno - 1 if hasattr(node, "body") else node.end_lineno
            texts = [line.partition("#")[2] for line in lines[first - 1:last]]
        if tags := TAG.findall(" ".join(texts)):
            joined |= dict.fromkeys(range(first, last + 1), tags)
    return joined


def code_lines(source):
    """nlts.py highlighted: HTML of each line, where tags are links to the paper's side. Spaces in
    front of a comment are marked: a phone has no room for them."""
    text = highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    text = re.sub(r'<span class="(?:n|p|o|w|nn|nb|bp)">([^<]*)</span>', r"\1", text)
    text = re.sub(r'(?<=\S)( {3,})(?=<span class="c1">)', r"<i>\1</i>", text)
    text = TAG.sub(lambda found: f'<a href="#{anchor(found[0])}">{found[0]}</a>', text)
    return text.split("\n")


def notation(source):
    """The table of the header: rows of paper's symbol in HTML, name here, shape, meaning."""
    head, *rows = re.search(r"^paper +here.*?\n\n", source, re.MULTILINE | re.DOTALL)[0].split("\n")
    starts = [word.start() for word in re.finditer(r"\S+", head)] + [None]
    table = [[row[a:b].strip() for a, b in zip(starts, starts[1:], strict=False)]
             for row in rows if row]
    return [[symbol(row[0]), *row[1:]] for row in table]


def symbol(text):
    """HTML of a symbol of the paper as the header spells it: 'Phi^0' with a Greek letter."""
    for name, letter in GREEK.items():
        text = text.replace(name, letter)
    return re.sub(r"_(\w+)", r"<sub>\1</sub>", re.sub(r"\^(-?\w)", r"<sup>\1</sup>", text))


def hunts(source, noticed):
    """{line of nlts.py: bugs that could stand there}, from the classroom's bug hunts; `noticed` is
    {name of a hunt: the test that fails}."""
    lines, parts, at = source.split("\n"), parts_of(source, {}), {}
    bugs = tomllib.loads((HERE / "classroom" / "hunts.toml").read_text(encoding="utf-8"))
    for name, bug in bugs.items():
        part, = [part for part in parts if part["name"] == bug["function"]]
        for number in range(part["first"], part["last"] + 1):
            if bug["right"] in lines[number - 1]:
                at.setdefault(number, []).append(bug | {"test": noticed[name]})
    return at


# The paper's side ---------------------------------------------------------------------------------

def printed():
    """docs/formulas.toml, where `errata` are the rows of docs/errata.md."""
    paper = tomllib.loads((DOCS / "formulas.toml").read_text(encoding="utf-8"))
    table = (DOCS / "errata.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", table, re.MULTILINE)
    keys = "where", "print", "right", "why", "tests"
    errata = {int(number): dict(zip(keys, map(marked, row.split(" | ")), strict=True))
              for number, row in rows}
    for item in paper["item"]:
        item["errata"] = {number: errata[number] for number in item.get("errata", [])}
    return paper


def marked(text):
    """HTML of a line of Markdown."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", html.escape(text.strip()))


def ablation(runs, variant):
    """[(data set, reward of both-priors, what a variant changes, runs)] from runs of `ablation`."""
    paper = grouped([run for run in runs if run["algorithm"] == "both-priors"], "dataset",
                    "variant")
    return [(title(dataset), with_error(*mean_and_error(rewards[""])),
             plus_minus(*mean_and_error(difference(rewards[variant], rewards[""]))),
             len(rewards[variant]))
            for dataset, rewards in paper.items()]


def mathml(latex):
    """MathML of '$...$' or '$$...$$'."""
    from latex2mathml.converter import convert
    display = "block" if latex.startswith("$$") else "inline"
    text = html.unescape(convert(latex.strip("$"), display=display))
    text = re.sub("<mi>([∼∈⪰←≔∣])</mi>", r"<mo>\1</mo>", text)
    return text.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "").replace(" />", "/>")


# The page -----------------------------------------------------------------------------------------

def build():
    """{name: text} of the page, its drawing, and the MathML of its formulas."""
    source, paper, run = (HERE / "nlts.py").read_text(encoding="utf-8"), printed(), tiny.play()
    known = json.loads((DOCS / "mathml.json").read_text(encoding="utf-8"))
    measured, still = film.contents(film.PAGE.read_text(encoding="utf-8"))
    formulas, joined = {}, tag_lines(source)
    # the first line of each tag
    where = {tag: number for number in sorted(joined, reverse=True) for tag in joined[number]}

    def value(expression):
        """A value of the tiny run: 'phi[5]', 'before.mu_hat'."""
        return tiny.show(jinja.compile_expression(expression)(run))

    def prose(text):
        """HTML of a text with formulas, in which <<expression>> is a value of the tiny run."""
        text = re.sub("<<(.*?)>>", lambda found: value(found[1]).replace("-", "−"), text)
        for latex in re.findall(r"\$+[^$]+\$+", text):
            formulas[latex] = known.get(latex) or mathml(latex)
            text = text.replace(latex, formulas[latex])
        return text

    jinja = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    jinja.filters |= {"anchor": anchor, "marked": marked, "prose": prose, "show": tiny.show,
                      "value": value,
                      "times": lambda x: film.times(x).replace(" ", "\N{NO-BREAK SPACE}")}
    template = jinja.from_string((DOCS / "reading.in.html").read_text(encoding="utf-8"))
    page = template.render(
        parts=parts_of(source, joined), lines=code_lines(source), joined=joined, where=where,
        paper=paper, run=run, notation=notation(source), hunts=hunts(source, paper["noticed"]),
        film=measured, memory=film.MEMORY[0], still=still,
        ruined=ablation(read(HERE / "figures" / "ablation.jsonl"),
                        "μ⁰: Eq. 5 on the buffer's rows"))
    return {"reading.html": page, "figure1.svg": figure1(page),
            "mathml.json": json.dumps(formulas, ensure_ascii=False, indent=0) + "\n"}


def figure1(page):
    """The page's drawing of Figure 1 as a picture of its own, for README.md: light, no links."""
    drawing = re.search('<svg class="figure1".*?</svg>', page, re.DOTALL)[0]
    light = dict(reversed(re.findall(r"--(\w+): (#\w+)", page)))       # they come before the dark
    rules = "".join(re.findall(r"^(?:\.figure1|\.kept).*\n", page, re.MULTILINE))
    rules = re.sub(r"var\(--(\w+)\)", lambda name: light[name[1]], rules)
    style = f"<style>\n{rules}.figure1 {{ background: white }}\n</style>\n<text"
    drawing = re.sub("</?a[^>]*>", "", drawing).replace("<text", style, 1)
    size = 'xmlns="http://www.w3.org/2000/svg" width="1080" height="300"'
    return drawing.replace("<svg ", f"<svg {size} ", 1) + "\n"


if __name__ == "__main__":
    for name, text in build().items():
        (DOCS / name).write_text(text, encoding="utf-8")
