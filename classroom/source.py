"""Texts of nlts.py: the part that is needed, with blanks; copies of it."""
import ast
import re
import textwrap
import threading

from .worker import is_blank, is_patch, name_of

PARSING = threading.Lock()
FEW = 5                    # statements: who writes fewer may well write the same


def parse(text):
    """ast.parse, one thread at a time: in Python 3.11 two at once may raise a SystemError."""
    with PARSING:
        return ast.parse(text)


def definitions(source):
    """{qualified name: node} of the functions of a text and the methods of its classes; of several
    with one name the last. `Class.name = function` counts, too."""
    found = {}
    for node in sorted(parse(source).body, key=is_patch):
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{child.name}": child for child in node.body
                      if isinstance(child, ast.FunctionDef)}
        elif is_patch(node):
            found[ast.unparse(node.targets[0])] = found.get(getattr(node.value, "id", ""), node)
    return found


def written(source):
    """The definitions that a student has written. ValueError with line and message if the text
    does not parse."""
    try:
        found = definitions(source)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from error
    except (RecursionError, MemoryError) as error:
        raise ValueError("too deeply nested") from error
    return {name: node for name, node in found.items() if not is_blank(node)}


# The text of an assignment ------------------------------------------------------------------------

def span(node):
    """The place of a definition in the list of lines, decorators included."""
    first = min(part.lineno for part in [node, *getattr(node, "decorator_list", [])])
    return slice(first - 1, node.end_lineno)


def only(source, roots):
    """The source without definitions and imports that the roots do not lead to."""
    body = parse(source).body[1:]                                # the docstring stays
    binds = {node: {name_of(node)} | {alias.asname or alias.name for alias in
                                      getattr(node, "names", [])} for node in body}
    names, kept = {*roots}, set()
    while fresh := {node for node in body if binds[node] & names} - kept:
        kept |= fresh
        names = {item.id for node in fresh for item in ast.walk(node) if isinstance(item, ast.Name)}
    lines = source.split("\n")
    for node in reversed([node for node in body if node not in kept]):
        lines[span(node)] = []
    text = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines).rstrip() + "\n")
    return re.sub(r"# [^\n]* -{5,}\n+(?=# [^\n]* -{5,}\n|$)", "", text).rstrip() + "\n"


def blank(source, names, asks=None):
    """The source with these functions unwritten: signature and docstring stay, no comment does.
    asks: {function: text}, added to docstrings."""
    lines, found = source.split("\n"), definitions(source)
    for name in (name for name in reversed(found) if name in names):
        node, first = found[name], found[name].body[0]           # the docstring
        indent = " " * first.col_offset
        signature = lines[span(node).start:first.lineno - 1]
        body = [line.partition("  #")[0].rstrip() for line in signature]
        body = "\n".join(body + lines[first.lineno - 1:first.end_lineno])
        if asks:
            more = textwrap.fill(asks[name], 100, initial_indent=indent, subsequent_indent=indent)
            body = body.removesuffix('"""').rstrip() + f'\n\n{more}\n{indent}"""'
        lines[span(node)] = [body, f"{indent}raise NotImplementedError"]
    return "\n".join(lines)


# Copies -------------------------------------------------------------------------------------------

def skeleton(function):
    """A function's syntax tree as text, without its docstring and with numbers for its locals."""
    function = parse(ast.unparse(function)).body[0]
    if ast.get_docstring(function):
        function.body = function.body[1:]
    parts = list(ast.walk(function))
    names = [part.arg for part in parts if isinstance(part, ast.arg)]
    names += [part.id for part in parts if isinstance(part, ast.Name)
              and isinstance(part.ctx, ast.Store)]
    numbers = {name: f"local{i}" for i, name in enumerate(dict.fromkeys(names))}
    for part in parts:
        if isinstance(part, ast.Name):
            part.id = numbers.get(part.id, part.id)
        elif isinstance(part, ast.arg):
            part.arg, part.annotation = numbers[part.arg], None
    return [ast.dump(node) for node in (function.args, *function.body)]


def copies(source, reference, names):
    """Which of these functions are the reference's, names of locals aside: all that are written,
    or those of at least FEW statements."""
    theirs, ours = written(source), definitions(reference)
    names = [name for name in names if isinstance(theirs.get(name), ast.FunctionDef)]
    same = [name for name in names if skeleton(theirs[name]) == skeleton(ours[name])]
    if same == names:
        return same
    return [name for name in same if sum(isinstance(part, ast.stmt) for part in
                                         ast.walk(ours[name])) - 2 >= FEW]
