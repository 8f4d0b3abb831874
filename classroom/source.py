"""Texts of nlts.py: with blanks, with solutions put in, without comments, as a module."""
import ast
import io
import sys
import textwrap
import tokenize
import types
from functools import cache
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
    return source + "\n\n" + read_text("student", extra).partition("\n")[2]


def load(source, name):
    """A module made from source text."""
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


@cache
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
    for name in sorted({*names} & {*found}, key=lambda name: -found[name].lineno):
        node, first = found[name], found[name].body[0]
        indent = " " * first.col_offset
        signature = lines[span(node).start:first.lineno - 1]
        body = [line.partition("  #")[0].rstrip() for line in signature]
        if ast.get_docstring(node):
            body += lines[first.lineno - 1:first.end_lineno]
            if asks and name in asks:
                more = textwrap.fill(asks[name], 100, initial_indent=indent,
                                     subsequent_indent=indent)
                body[-1] = body[-1].rstrip().removesuffix('"""')
                body += ["", more, f'{indent}"""']
        lines[span(node)] = [*body, f"{indent}raise NotImplementedError"]
    return "\n".join(lines)


def fill(source, solution):
    """The source with the functions that `solution` has written in place of its own blanks."""
    lines, ours, given = source.split("\n"), definitions(source), definitions(solution)
    names = [name for name in given if name in ours and is_blank(ours[name])]
    for name in sorted(names, key=lambda name: -ours[name].lineno):
        lines[span(ours[name])] = solution.split("\n")[span(given[name])]
    return "\n".join(lines)


def plain(source):
    """The source without comments, and without formulas in docstrings: they tell no line's secret.
    """
    lines = source.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() or None
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    nodes = [node for node in nodes if ast.get_docstring(node)]
    for first in sorted((node.body[0] for node in nodes), key=lambda first: -first.lineno):
        indent = " " * first.col_offset
        words = without_formulas(first.value.value)
        text = textwrap.indent(f'"""{words}"""', indent).split("\n") if words else []
        lines[first.lineno - 1:first.end_lineno] = text
    return "\n".join(line for line in lines if line is not None)


def without_formulas(text):
    """The sentences of a docstring's first paragraph that state no formula."""
    sentences = " ".join(text.partition("\n\n")[0].split()).split(". ")
    kept = [sentence for sentence in sentences if not set(sentence) & set("=^~@")]
    return textwrap.fill(". ".join(kept), 85)
