"""docs/reading.html: the paper and nlts.py side by side, joined by the tags in nlts.py.

`python -m lab.reading` builds it from nlts.py, docs/formulas.toml (what the paper prints),
docs/errata.md and docs/reading.in.html. Formulas are kept as MathML in docs/mathml.json:
latex2mathml is needed only when one changes.
"""
import ast
import base64
import html
import io
import json
import re
import tokenize
import tomllib
from collections import namedtuple
from pathlib import Path
from string import Template

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from lab import tiny

HERE = Path(__file__).parent.parent
PAGE, CACHE = HERE / "docs" / "reading.html", HERE / "docs" / "mathml.json"
TAG = re.compile(r"\[([12]\.\d+)\]|(Eq\. \d)")
SECTION = re.compile(r"# (.*?) -{5,}$")


def tags_in(text):
    """The tags that a text names: '2.14', 'Eq. 6'."""
    return [line or equation for line, equation in TAG.findall(text)]


def anchor(tag):
    """Where the paper's side of a tag is: 'line-2-14', 'eq-6'."""
    return tag.replace("Eq. ", "eq-") if tag.startswith("Eq.") else "line-" + tag.replace(".", "-")


# The code's side ----------------------------------------------------------------------------------

# A function, a method or what is between them: lines first to last of nlts.py. Its docstring's
# first line, and the heading of a section, if one starts here.
Part = namedtuple("Part", "name first last doc section")


def parts_of(source):
    """nlts.py in parts that leave no line out; a class begins with its first method."""
    ends = {}                                         # name: (last line, docstring)
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            ends[node.name] = node.end_lineno, ast.get_docstring(node)
        elif isinstance(node, ast.ClassDef):
            first, *others = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            ends[node.name] = first.end_lineno, ast.get_docstring(node)
            for method in others:
                ends[f"{node.name}.{method.name}"] = method.end_lineno, ast.get_docstring(method)
        elif isinstance(node, ast.Expr):
            ends["header"] = node.end_lineno, "citation, notation, what differs from print"
        else:
            ends["imports"] = node.end_lineno, ""
    lines, parts, first = source.split("\n"), [], 1
    for name, (last, doc) in ends.items():
        while not lines[first - 1].strip():
            first += 1
        heading = SECTION.match(lines[first - 1])
        parts.append(Part(name, first, last, (doc or "").split("\n")[0],
                          heading[1] if heading else ""))
        first = last + 1
    return parts


def tag_lines(source):
    """{line of nlts.py: set of tags}. A tag in a comment holds for the statement that it ends, one
    in the docstring of a function for its first lines."""
    joined = {}
    statement = {}                                    # the lines of the simple statement at a line

    def join(tags, numbers):
        for number in numbers if tags else ():
            joined.setdefault(number, set()).update(tags)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            numbers = range(node.lineno, node.end_lineno + 1)
            statement.update(dict.fromkeys(numbers, numbers))
        if isinstance(node, ast.FunctionDef) and (doc := ast.get_docstring(node)):
            join(tags_in(doc), range(node.lineno, node.body[0].end_lineno + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            number = token.start[0]
            join(tags_in(token.string), statement.get(number, [number]))
    return joined


def code_lines(source):
    """nlts.py highlighted: HTML of each line, where tags are links to the paper's side."""
    text = highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    text = re.sub(r'<span class="(?:n|p|o|w|nn|nb|bp)">([^<]*)</span>', r"\1", text)
    text = TAG.sub(lambda m: f'<a href="#{anchor(m[1] or m[2])}">{m[0]}</a>', text)
    return text.split("\n")


def code_html(part, lines, joined):
    """The lines of a part with their numbers."""
    rows = []
    for number in range(part.first + bool(part.section), part.last + 1):
        tags = " ".join(sorted(anchor(tag) for tag in joined.get(number, [])))
        attribute = f' data-t="{tags}"' if tags else ""
        body = re.sub(r'(?<=\S)( {3,})(?=<span class="c1">)', r"<i>\1</i>", lines[number - 1])
        rows.append(f'<code id="L{number}"{attribute}><a class="n" href="../nlts.py#L{number}" '
                    f'tabindex="-1">{number}</a>{body}\n</code>')
    return f"<pre>{''.join(rows)}</pre>"


# The paper's side ---------------------------------------------------------------------------------

class Paper:
    """What the paper prints, what is right, and formulas as MathML."""

    def __init__(self):
        content = tomllib.loads((HERE / "docs" / "formulas.toml").read_text())
        self.items = content["item"]
        self.kinds = {name: kind for kind, names in content["parts"].items() for name in names}
        rows = re.findall(r"^\| (\d+) \|.*\|([^|]*)\|$", (HERE / "docs" / "errata.md").read_text(),
                          re.MULTILINE)
        self.shown = {int(number): re.findall(r"::(test_\w+)", cell) for number, cell in rows}
        self.formulas = json.loads(CACHE.read_text()) if CACHE.exists() else {}

    def math(self, latex):
        """MathML of '$...$' or '$$...$$'."""
        if latex not in self.formulas:
            from latex2mathml.converter import convert
            display = "block" if latex.startswith("$$") else "inline"
            text = html.unescape(convert(latex.strip("$"), display=display))
            text = re.sub("<mi>([∼∈⪰←≔∣])</mi>", r"<mo>\1</mo>", text)
            text = text.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
            self.formulas[latex] = text.replace(" />", "/>")
        return self.formulas[latex]

    def prose(self, text):
        """HTML of a text with formulas, **bold** and *emphasis*."""
        pieces = re.split(r"(\$\$[^$]*\$\$|\$[^$]*\$)", text)
        for i, piece in enumerate(pieces):
            if piece.startswith("$"):
                pieces[i] = self.math(piece)
                continue
            piece = re.sub(r"\*\*(.*?)\*\*", r"<b>\1</b>", html.escape(piece))
            pieces[i] = re.sub(r"\*(.*?)\*", r"<em>\1</em>", piece)
        return "".join(pieces)

    def algorithm(self, number):
        """Lines of pseudo code as printed."""
        rows = []
        for item in self.items:
            if not item["tag"].startswith(f"{number}."):
                continue
            here = anchor(item["tag"])
            before = f'<p class="loop">{self.prose(item["before"])}</p>' if "before" in item else ""
            mark = f' <a class="mark" href="#{here}">differs</a>' if "right" in item else ""
            rows.append(f'<li data-t="{here}">{before}<a class="tag" href="#{here}">'
                        f'[{item["tag"]}]</a> {self.prose(item["printed"])}{mark}</li>')
        return "".join(rows)

    def card(self, item, line, values):
        """What the paper prints, what is right, shapes and values; `line` is where its code is."""
        tag = item["tag"]
        name = tag if "where" in item else f"[{tag}]"
        tags = " ".join(anchor(tag) for tag in [tag, *item.get("lines", [])])
        where = f'<span class="where">{item["where"]}</span><br>' if "where" in item else ""
        label = '<b class="label">printed</b> ' if "right" in item else ""
        rows = [f'<div class="card" id="{anchor(tag)}" data-t="{tags}"><div class="math">',
                f'<a class="tag" href="#L{line}">{name}</a> ',
                f'{where}{label}{self.prose(item["printed"])}</div>']
        if "right" in item:
            numbers = ", ".join(map(str, item["errata"]))
            names = dict.fromkeys(name for k in item["errata"] for name in self.shown[k])
            tests = ", ".join(f"<code>{name}</code>" for name in names)
            rows.append(f'<p class="right"><b class="label">right</b> {self.prose(item["right"])}. '
                        f'{html.escape(item["why"])} <a href="errata.md">Erratum {numbers}</a>, '
                        f"shown by {tests}.</p>")
        if "shapes" in item:
            rows.append(f'<p class="shapes">{item["shapes"]}</p>')
        if "values" in item:
            shown = html.escape("\n".join(values[key] for key in item["values"]))
            rows.append(f'<pre class="values">{shown}</pre>')
        return "".join(rows) + "</div>"


# The page -----------------------------------------------------------------------------------------

def sections(source, paper, values):
    """nlts.py from top to bottom: the paper's side and the code's, or folded."""
    lines, joined, placed, page = code_lines(source), tag_lines(source), set(), []
    for part in parts_of(source):
        if part.section:
            page.append(f'<h2 id="L{part.first}">{part.section}</h2>')
        first = {}                                    # tag: the first line of this part that has it
        for number in range(part.first, part.last + 1):
            for tag in joined.get(number, []):
                first.setdefault(tag, number)
        code = code_html(part, lines, joined)
        kind = paper.kinds.get(part.name, paper.kinds.get(part.name.split(".")[0], "plumbing"))
        if not first:
            opened = " open" if part.name == "header" else ""
            page.append(f'<details{opened}><summary><span class="kind">{kind}</span> '
                        f"<code>{part.name}</code> {html.escape(part.doc)}</summary>{code}"
                        "</details>")
            continue
        cards = [paper.card(item, first[item["tag"]], values) for item in paper.items
                 if item["tag"] in first and item["tag"] not in placed]
        again = [f'<a data-t="{anchor(tag)}" href="#{anchor(tag)}">{tag}</a>'
                 for tag in sorted(first) if tag in placed]
        if again:
            cards.append(f'<p class="again">see {", ".join(again)} above</p>')
        placed.update(first)
        mark = ' <span class="kind">ours</span>' if kind == "ours" else ""
        page.append(f'<div class="row"><div class="paper">{"".join(cards)}</div>'
                    f'<div class="code"><p class="name">{part.name}{mark}</p>{code}</div></div>')
    return "\n".join(page)


def lit(tags):
    """CSS: pointing at or focusing one side of a tag lights up both. Needs no script."""
    rule = ('main:has([data-t~="{0}"]:is(:hover,:focus-within,:target)) [data-t~="{0}"]'
            "{{background:var(--lit);border-color:var(--accent)}}")
    return "\n".join(rule.format(anchor(tag)) for tag in tags)


def build():
    """The page, and the MathML of its formulas."""
    source, paper, run = (HERE / "nlts.py").read_text(), Paper(), tiny.play()
    contents = [f'<a href="#L{part.first}">{part.section.split(":")[0]}</a>'
                for part in parts_of(source) if part.section]
    picture = (HERE / "figures" / "picture.png").read_bytes()
    page = Template((HERE / "docs" / "reading.in.html").read_text()).substitute(
        code=sections(source, paper, tiny.values(run)), contents=" · ".join(contents),
        algorithm1=paper.algorithm(1), algorithm2=paper.algorithm(2), run=tiny.table(run),
        picture=base64.b64encode(picture).decode(), lit=lit(item["tag"] for item in paper.items))
    return page, paper.formulas


if __name__ == "__main__":
    page, formulas = build()
    PAGE.write_text(page)
    CACHE.write_text(json.dumps(formulas, ensure_ascii=False, indent=0) + "\n")
    print(f"{PAGE.relative_to(HERE)}: {len(page.encode()) / 1000:.0f} kB")
