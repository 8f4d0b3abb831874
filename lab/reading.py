"""docs/reading.html: the paper and nlts.py side by side, joined by the tags in nlts.py.

`python -m lab.reading` builds it from nlts.py, docs/formulas.toml (what the paper prints) and
docs/reading.in.html. Formulas are kept as MathML in docs/mathml.json: latex2mathml is needed only
when one changes.
"""
import ast
import base64
import html
import io
import json
import re
import tokenize
import tomllib
from dataclasses import dataclass, field
from itertools import pairwise
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
@dataclass
class Part:
    """A function, a method or what is between them: lines first to last of nlts.py."""
    name: str
    first: int
    last: int
    doc: str = ""
    section: str = ""                                 # the heading, if one starts here

    def lines(self):
        """'lines 5–7'."""
        if self.first == self.last:
            return f"line {self.first}"
        return f"lines {self.first}–{self.last}"


def parts_of(source):
    """nlts.py in parts that leave no line out; a class begins with its first method."""
    lines = source.split("\n")
    ends = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            ends.append((node.name, node.end_lineno, ast.get_docstring(node)))
        elif isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            ends.append((node.name, methods[0].end_lineno, ast.get_docstring(node)))
            ends += [(f"{node.name}.{method.name}", method.end_lineno, ast.get_docstring(method))
                     for method in methods[1:]]
        elif isinstance(node, ast.Expr):
            ends.append(("header", node.end_lineno, "citation, notation, what differs from print"))
        else:
            name = node.targets[0].id if isinstance(node, ast.Assign) else "imports"
            ends.append((name, node.end_lineno, ""))
    parts, first = [], 1
    for (name, last, doc), (following, *_) in pairwise([*ends, ("end",)]):
        if name == following == "imports":
            continue
        part = Part(name, first, last, (doc or "").split("\n")[0])
        while not lines[part.first - 1].strip():
            part.first += 1
        if match := SECTION.match(lines[part.first - 1]):
            part.section = match[1]
        parts.append(part)
        first = last + 1
    return parts


def tag_lines(source):
    """{line of nlts.py: set of tags}. A tag at the end of a line is of that statement, one in the
    docstring of a function of its first lines, and one in a line of its own of what follows."""
    lines, joined, alone = source.split("\n"), {}, []
    statement = {}                                    # the lines of the simple statement at a line

    def join(tags, numbers):
        for number in numbers:
            joined.setdefault(number, set()).update(tags)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            numbers = range(node.lineno, node.end_lineno + 1)
            statement.update(dict.fromkeys(numbers, numbers))
        if isinstance(node, ast.FunctionDef) and (doc := ast.get_docstring(node)):
            join(tags_in(doc), range(node.lineno, node.body[0].end_lineno + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        tags, number = tags_in(token.string), token.start[0]
        if token.type != tokenize.COMMENT or not tags:
            continue
        if token.line.strip() == token.string:
            alone.append((tags, number))
        else:
            join(tags, statement.get(number, [number]))
    for tags, number in alone:
        join(tags, range(number, end_of_run(lines, joined, tags, number)))
    return {number: tags for number, tags in joined.items() if tags}


def end_of_run(lines, joined, tags, number):
    """Up to where a tag in a line of its own holds: the next tag of the same pseudo code."""
    end = number + 1
    while lines[end - 1].strip() and not lines[end - 1].strip().startswith("#"):
        if any(tag[0] == tags[0][0] for tag in joined.get(end, [])):
            break
        end += 1
    return end


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
@dataclass
class Paper:
    """The formulas, and their MathML as far as it is known."""
    items: list
    kinds: dict
    shown: dict                                       # number of an erratum: the tests that show it
    known: dict
    used: dict = field(default_factory=dict)

    @classmethod
    def read(cls):
        """From docs/formulas.toml, docs/errata.md and docs/mathml.json."""
        content = tomllib.loads((HERE / "docs" / "formulas.toml").read_text())
        known = json.loads(CACHE.read_text()) if CACHE.exists() else {}
        return cls(content["item"], content["parts"], tests_of_errata(), known)

    def math(self, latex):
        """MathML of '$...$' or '$$...$$'."""
        if latex not in self.known:
            self.known[latex] = converted(latex)
        self.used[latex] = self.known[latex]
        return self.used[latex]

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

    def line(self, item):
        """A line of pseudo code as printed."""
        here = anchor(item["tag"])
        before = f'<p class="loop">{self.prose(item["before"])}</p>' if "before" in item else ""
        mark = f' <a class="mark" href="#{here}">differs</a>' if "right" in item else ""
        return (f'<li data-t="{here}">{before}<a class="tag" href="#{here}">[{item["tag"]}]</a> '
                f'{self.prose(item["printed"])}{mark}</li>')

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
            rows.append(self.erratum(item))
        if "shapes" in item:
            rows.append(f'<p class="shapes">{item["shapes"]}</p>')
        shown = "\n".join(values[key] for key in item.get("values", []))
        if shown:
            rows.append(f'<pre class="values">{html.escape(shown)}</pre>')
        return "".join(rows) + "</div>"

    def erratum(self, item):
        """What is right, why, and the tests that show it."""
        numbers = ", ".join(map(str, item["errata"]))
        names = dict.fromkeys(name for k in item["errata"] for name in self.shown[k])
        tests = ", ".join(f"<code>{name}</code>" for name in names)
        return (f'<p class="right"><b class="label">right</b> {self.prose(item["right"])}. '
                f'{html.escape(item["why"])} <a href="errata.md">Erratum {numbers}</a>, shown by '
                f"{tests}.</p>")


def tests_of_errata():
    """{number: names of tests}, from the last column of the table in docs/errata.md."""
    text = (HERE / "docs" / "errata.md").read_text()
    rows = re.findall(r"^\| (\d+) \|.*\|([^|]*)\|$", text, re.MULTILINE)
    return {int(number): re.findall(r"::(test_\w+)", cell) for number, cell in rows}


def converted(latex):
    """LaTeX to MathML."""
    from latex2mathml.converter import convert
    display = "block" if latex.startswith("$$") else "inline"
    text = html.unescape(convert(latex.strip("$"), display=display))
    text = re.sub("<mi>([∼∈⪰←≔∣])</mi>", r"<mo>\1</mo>", text)
    return text.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "").replace(" />", "/>")


# The page -----------------------------------------------------------------------------------------
def sections(source, paper, values):
    """nlts.py from top to bottom: the paper's side and the code's, or folded."""
    lines, joined, placed, page = code_lines(source), tag_lines(source), {}, []
    for part in parts_of(source):
        if part.section:
            page.append(f'<h2 id="L{part.first}">{part.section}</h2>')
        first = {}                                    # tag: the first line of this part that has it
        for number in range(part.first, part.last + 1):
            for tag in joined.get(number, []):
                first.setdefault(tag, number)
        code = code_html(part, lines, joined)
        kind = kind_of(part, paper.kinds)
        if not first:
            page.append(folded(part, kind, code))
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


def kind_of(part, kinds):
    """'paper', 'ours' or 'plumbing'."""
    if part.name.split(".")[-1].startswith("_"):
        return "plumbing"
    for name in (part.name, part.name.split(".")[0]):
        for kind, names in kinds.items():
            if name in names:
                return kind
    return "plumbing"


def folded(part, kind, code):
    """A part without a tag."""
    opened = " open" if part.name == "header" else ""
    return (f'<details{opened}><summary><span class="kind">{kind}</span> <code>{part.name}</code> '
            f'{html.escape(part.doc)} <span class="where">{part.lines()}</span>'
            f"</summary>{code}</details>")


def lit(tags):
    """CSS: pointing at or focusing one side of a tag lights up both. Needs no script."""
    rule = ('main:has([data-t~="{0}"]:is(:hover,:focus-within,:target)) [data-t~="{0}"]'
            "{{background:var(--lit);border-color:var(--accent)}}")
    return "\n".join(rule.format(anchor(tag)) for tag in tags)


def image():
    """The picture of README.md as a data address, so that the page is one file."""
    return base64.b64encode((HERE / "figures" / "picture.png").read_bytes()).decode()


def build():
    """The page, and the MathML of its formulas."""
    source = (HERE / "nlts.py").read_text()
    paper = Paper.read()
    run = tiny.play()
    code = sections(source, paper, tiny.values(run))
    contents = [f'<a href="#L{part.first}">{part.section.split(":")[0]}</a>'
                for part in parts_of(source) if part.section]
    algorithms = {f"algorithm{k}": "".join(paper.line(item) for item in paper.items
                                           if item["tag"].startswith(f"{k}.")) for k in "12"}
    template = Template((HERE / "docs" / "reading.in.html").read_text())
    page = template.substitute(algorithms, code=code, contents=" · ".join(contents),
                               picture=image(), run=tiny.table(run),
                               lit=lit(item["tag"] for item in paper.items))
    return page, paper.used


def main():
    """Write the page."""
    page, formulas = build()
    PAGE.write_text(page)
    CACHE.write_text(json.dumps(formulas, ensure_ascii=False, indent=0) + "\n")
    print(f"{PAGE.relative_to(HERE)}: {len(page.encode()) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
