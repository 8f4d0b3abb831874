"""Texts of nlts.py: with blanks, with solutions put in, without comments, as a module."""
import ast
import io
import textwrap
import threading
import tokenize
from functools import cache

from .worker import is_blank

PARSING = threading.Lock()


def parse(text):
    """ast.parse, one thread at a time: in Python 3.11 two at once may raise a SystemError."""
    with PARSING:
        return ast.parse(text)


@cache
def definitions(source):
    """{qualified name: node} of the functions of a module and the methods of its classes."""
    found = {}
    for node in parse(source).body:
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


def blank(source, names, asks=None):
    """The source with these functions unwritten: signature and docstring stay, no comment does.
    asks: {function: text}, added to docstrings."""
    lines, found = source.split("\n"), definitions(source)
    for name in (name for name in reversed(found) if name in names):
        node, first = found[name], found[name].body[0]
        indent = " " * first.col_offset
        signature = lines[span(node).start:first.lineno - 1]
        body = [line.partition("  #")[0].rstrip() for line in signature]
        if ast.get_docstring(node):
            body += lines[first.lineno - 1:first.end_lineno]
        if asks and asks.get(name):
            body[-1] = body[-1].rstrip().removesuffix('"""')
            more = textwrap.fill(asks[name], 100, initial_indent=indent, subsequent_indent=indent)
            body += ["", more, f'{indent}"""']
        lines[span(node)] = [*body, f"{indent}raise NotImplementedError"]
    return "\n".join(lines)


def fill(source, solution):
    """The source with the functions that `solution` has written in place of its own blanks."""
    lines, ours, given = source.split("\n"), definitions(source), definitions(solution)
    for name in (name for name in reversed(ours) if name in given and is_blank(ours[name])):
        lines[span(ours[name])] = solution.split("\n")[span(given[name])]
    return "\n".join(lines)


def plain(source):
    """The source without comments and docstrings that state formulas: they tell a line's secret."""
    lines = source.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() or None
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(parse(source)) if isinstance(node, documented)]
    strings = [node.body[0] for node in nodes if ast.get_docstring(node)]
    for string in sorted(strings, key=lambda string: -string.lineno):
        words = string.value.value.partition("\n\n")[0].rstrip()
        indent = " " * string.col_offset
        text = f'{indent}"""{words}'
        room = len(text.rpartition("\n")[2]) <= 97               # for the last quotes
        text += '"""' if room else f'\n{indent}"""'
        lines[string.lineno - 1:string.end_lineno] = [None if set(words) & set("=^~@") else text]
    return "\n".join(line for line in lines if line is not None)
