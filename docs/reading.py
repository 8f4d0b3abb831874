"""docs/reading.html: the paper and nlts.py side by side, joined by the tags in nlts.py.

`python -m docs.reading` builds it from nlts.py, docs/formulas.toml (what the paper prints),
docs/errata.md and docs/reading.in.html, a Jinja template that has all the HTML. Formulas are kept
as MathML in docs/mathml.json: latex2mathml is needed only when one changes.
"""
import ast
import base64
import html
import json
import re
import tomllib
from pathlib import Path

import jinja2
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from docs import tiny

HERE = Path(__file__).parent.parent
DOCS = HERE / "docs"
PAGE, CACHE = DOCS / "reading.html", DOCS / "mathml.json"
TAG = re.compile(r"\[[12]\.\d+\]|Eq\. \d")
SECTION = re.compile(r"# (.*?) -{5,}$")


def anchor(tag):
    """Where the paper's side of a tag is: [2.14] at 'line-2-14', Eq. 6 at 'eq-6', and what stands
    beside a part, 'beside match_mean', at 'beside-match_mean'."""
    text = tag.strip("]").replace("Eq. ", "eq-").replace("[", "line-")
    return text.replace(".", "-").replace(" ", "-")


# The code's side ----------------------------------------------------------------------------------

def part_ends(source):
    """{name: last line} of the parts of nlts.py, which leave no line out: functions, methods and
    what is between them. A class begins with its first method; all plumbing is one part."""
    header, *others = ast.parse(source).body
    plumbing = 1 + next(number for number, line in enumerate(source.split("\n"))
                        if line.startswith("# Plumbing"))
    ends = {"header": header.end_lineno}
    for node in others:
        if node.lineno > plumbing:
            ends["plumbing"] = node.end_lineno
        elif isinstance(node, ast.ClassDef):
            first, *methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            ends[node.name] = first.end_lineno
            ends |= {f"{node.name}.{method.name}": method.end_lineno for method in methods}
        else:
            ends[getattr(node, "name", "imports")] = node.end_lineno
    return ends


def parts_of(source, joined):
    """The parts of nlts.py: `section` matches a heading that starts here, `doc` a docstring's first
    line, `joined` is from `tag_lines`; `code` is the first line of code."""
    lines, parts, first = source.split("\n"), [], 1
    for name, last in part_ends(source).items():
        while not lines[first - 1].strip():
            first += 1
        section = SECTION.match(lines[first - 1])
        code = first + 1 if section else first
        while not lines[code - 1].strip():
            code += 1
        doc = re.search(r'"""(.*?)("""|$)', "\n".join(lines[first - 1:last]), re.MULTILINE)
        tags = sorted({tag for line in range(first, last + 1) for tag in joined.get(line, [])})
        parts.append({"name": name, "first": first, "last": last, "section": section, "doc": doc,
                      "tags": tags, "code": code})
        first = last + 1
    return parts


def tag_lines(source):
    """{line of nlts.py: its tags}. A tag in a comment holds for the statement that it ends, one in
    the head of a function, to which its docstring belongs, for the head."""
    lines, joined = source.split("\n"), {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            last = node.body[0].end_lineno
            texts = lines[node.lineno - 1:last]
        elif isinstance(node, ast.stmt):
            last = node.body[0].lineno - 1 if hasattr(node, "body") else node.end_lineno
            texts = [line.partition("#")[2] for line in lines[node.lineno - 1:last]]
        else:
            continue
        if tags := TAG.findall(" ".join(texts)):
            joined |= dict.fromkeys(range(node.lineno, last + 1), tags)
    return joined


def code_lines(source):
    """nlts.py highlighted: HTML of each line, where tags are links to the paper's side. Spaces in
    front of a comment are marked: a phone has no room for them."""
    text = highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    text = re.sub(r'<span class="(?:n|p|o|w|nn|nb|bp)">([^<]*)</span>', r"\1", text)
    text = re.sub(r'(?<=\S)( {3,})(?=<span class="c1">)', r"<i>\1</i>", text)
    text = TAG.sub(lambda found: f'<a href="#{anchor(found[0])}">{found[0]}</a>', text)
    return text.split("\n")


# The paper's side ---------------------------------------------------------------------------------

def printed():
    """docs/formulas.toml, where `errata` are {number: names of the tests that show it}."""
    paper = tomllib.loads((DOCS / "formulas.toml").read_text(encoding="utf-8"))
    errata = (DOCS / "errata.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|(.*)", errata, re.MULTILINE)
    tests = {int(number): re.findall(r"::(test_\w+)", row) for number, row in rows}
    for item in paper["item"]:
        if "errata" in item:
            item["errata"] = {number: tests[number] for number in item["errata"]}
    return paper


def mathml(latex, formulas):
    """MathML of '$...$' or '$$...$$', which `formulas` keeps."""
    if latex not in formulas:
        from latex2mathml.converter import convert
        display = "block" if latex.startswith("$$") else "inline"
        text = html.unescape(convert(latex.strip("$"), display=display))
        text = re.sub("<mi>([∼∈⪰←≔∣])</mi>", r"<mo>\1</mo>", text)
        text = text.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
        formulas[latex] = text.replace(" />", "/>")
    return formulas[latex]


# The page -----------------------------------------------------------------------------------------

def build():
    """The page, and the MathML of its formulas."""
    source, paper, run = (HERE / "nlts.py").read_text(encoding="utf-8"), printed(), tiny.play()
    formulas = json.loads(CACHE.read_text(encoding="utf-8"))
    joined = tag_lines(source)
    # the first line of each tag
    where = {tag: number for number in sorted(joined, reverse=True) for tag in joined[number]}
    picture = base64.b64encode((HERE / "figures" / "picture.png").read_bytes()).decode()

    def prose(text):
        """HTML of a text with formulas."""
        return re.sub(r"\$+[^$]+\$+", lambda found: mathml(found[0], formulas), text)

    def value(expression):
        """A value of the tiny run: 'phi[5]', 'before.mu_hat'."""
        return tiny.show(jinja.compile_expression(expression)(run))

    jinja = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    jinja.filters |= {"anchor": anchor, "prose": prose, "show": tiny.show, "value": value}
    template = jinja.from_string((DOCS / "reading.in.html").read_text(encoding="utf-8"))
    page = template.render(parts=parts_of(source, joined), lines=code_lines(source), joined=joined,
                           where=where, paper=paper, run=run, picture=picture)
    return page, formulas


if __name__ == "__main__":
    page, formulas = build()
    PAGE.write_text(page, encoding="utf-8")
    CACHE.write_text(json.dumps(formulas, ensure_ascii=False, indent=0) + "\n",
                     encoding="utf-8")
    print(f"{PAGE.relative_to(HERE)}: {len(page.encode()) / 1000:.0f} kB")
