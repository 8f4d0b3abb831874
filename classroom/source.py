"""Texts of nlts.py: with blanks, with solutions put in, without comments, as a module."""
import ast
import site
import sys
import textwrap
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def read_text(*names):
    """A text file of the classroom."""
    return HERE.joinpath(*names).read_text(encoding="utf-8")


def read_reference(extra=None):
    """nlts.py, and below it the further functions that an assignment asks for."""
    source = (ROOT / "nlts.py").read_text(encoding="utf-8")
    if extra is None:
        return source
    lines = read_text("student", extra).split("\n")[1:]                      # no docstring
    body = [line for line in lines if not line.startswith(("import ", "from "))]
    return source + "\n\n" + "\n".join(body).strip("\n") + "\n"


def secrets():
    """What a student's process must not see: this project, and installed copies of nlts."""
    copies = []
    for folder in map(Path, [*site.getsitepackages(), site.getusersitepackages()]):
        copies += [*folder.glob("nlts.py"), *folder.glob("__pycache__/nlts.*")]
    return (ROOT, *copies)


def load(source, name):
    """A module made from source text."""
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


def definitions(source):
    """{qualified name: node} of the functions of a module and the methods of its classes."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            methods = [child for child in node.body if isinstance(child, ast.FunctionDef)]
            found |= {f"{node.name}.{method.name}": method for method in methods}
    return found


def span(node):
    """Where a function stands in the list of lines, decorators included."""
    first = min(part.lineno for part in [node, *node.decorator_list])
    return slice(first - 1, node.end_lineno)


def is_blank(node):
    """Whether a function is still to be written."""
    return ast.unparse(node.body[-1]) == "raise NotImplementedError" and len(node.body) <= 2


def blank(source, names, asks=None):
    """The source with these functions unwritten: signature and docstring stay, no comment does.

    asks: {function: text}, added to docstrings.
    """
    lines, found = source.split("\n"), definitions(source)
    wanted = [name for name in set(names) if name in found]
    for name in sorted(wanted, key=lambda name: -found[name].lineno):
        node = found[name]
        first = node.body[0]
        signature = lines[span(node).start:first.lineno - 1]
        signature = [line.partition("  #")[0].rstrip() for line in signature]
        documented = ast.get_docstring(node) is not None
        docstring = lines[first.lineno - 1:first.end_lineno] if documented else []
        indent = " " * first.col_offset
        if asks and name in asks and documented:
            more = textwrap.wrap(asks[name], 100, initial_indent=indent, subsequent_indent=indent)
            docstring[-1] = docstring[-1].rstrip().removesuffix('"""')
            docstring = [*docstring, "", *more, f'{indent}"""']
        lines[span(node)] = [*signature, *docstring, f"{indent}raise NotImplementedError"]
    return "\n".join(lines)


def fill(source, solution):
    """The source with the functions that `solution` has written in place of its own blanks."""
    lines, ours, given = source.split("\n"), definitions(source), definitions(solution)
    names = [name for name in given if name in ours and is_blank(ours[name])]
    for name in sorted(names, key=lambda name: -ours[name].lineno):
        lines[span(ours[name])] = solution.split("\n")[span(given[name])]
    return "\n".join(lines)


def plain(source):
    """The source in one plain layout, without comments and without formulas in docstrings.

    Then neither a comment nor the layout nor a docstring tells where a line was changed.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        if documented and ast.get_docstring(node):
            words = without_formulas(ast.get_docstring(node))
            node.body[:1] = [ast.Expr(ast.Constant(words))] if words else []
    text = ast.unparse(ast.fix_missing_locations(tree))
    return text.replace("\nclass ", "\n\nclass ").replace("\ndef ", "\n\ndef ") + "\n"


def without_formulas(text):
    """The sentences of a docstring that state no formula."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        sentences = " ".join(paragraph.split()).split(". ")
        kept = [sentence for sentence in sentences if not set(sentence) & set("=^~@")]
        paragraphs.append(textwrap.fill(". ".join(kept), 90))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
