"""Which program played a run: digests of the syntax trees that it executes.

Four parts count from end to end. Of the rest of lab/ and of a study, only what a run reaches does:
the functions and classes that it starts from, and what these refer to, and so on. So another
sentence in a report or another color in a picture changes nothing, another number in a prior does.
Comments, docstrings and layout are not in a syntax tree, or are taken out.
"""
import ast
import functools
import hashlib
import json
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
OURS = "nlts_beyond"                                 # the module of our prior
WHOLE = {  # part: its files
    "nlts.py": ["nlts.py"],
    f"{OURS}.py": [f"{OURS}.py"],
    "datasets.py": ["datasets.py", "lab/files.py", "data/sources.toml"],
    "lab/fast.py": ["lab/fast.py"],
}
REST = "lab/ and studies/"                             # as far as a run executes them


def program(functions):
    """{part: digest} of the program that runs these functions and classes."""
    return {part: whole(part) for part in WHOLE} | {REST: short(reached(functions))}


@functools.cache
def whole(part):
    """The digest of a part that counts from end to end."""
    return short([file(HERE / name) for name in WHOLE[part]])


def short(data):
    """Eight digits that name the data."""
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:8]


def file(path):
    """A file as plain data, without comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else plain(ast.parse(text))


def plain(node):
    """A syntax tree as nested lists, the same in every version of Python."""
    if isinstance(node, list):
        return [plain(part) for part in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(fields.get("body"), list) and fields["body"] and is_docstring(fields["body"][0]):
        fields["body"] = fields["body"][1:]
    there = {name: value for name, value in fields.items() if value not in (None, [])}
    return [type(node).__name__, *([name, plain(value)] for name, value in there.items())]


def is_docstring(node):
    """Whether a statement is a text and nothing else."""
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str))


def reached(functions):
    """{"module.name": syntax tree} of what these functions and classes refer to, themselves too."""
    found, todo = {}, []
    for function in functions:
        module, name = function.__module__, function.__qualname__.partition(".")[0]
        module = "experiments" if module == "__main__" else module
        if is_house(module) and name not in definitions(module):
            raise ValueError(f"{module}.{function.__qualname__}: expected a function or class that "
                             "is defined at the top of its module")
        todo.append((module, name))
    while todo:
        module, name = todo.pop()
        node = definitions(module).get(name) if is_house(module) else None
        if isinstance(node, tuple):                   # imported from elsewhere
            todo.append(node)
        elif node is not None and f"{module}.{name}" not in found:
            found[f"{module}.{name}"] = plain(node)
            todo += [(module, part.id) for part in ast.walk(node) if isinstance(part, ast.Name)]
            todo += attributes(module, node)
    return dict(sorted(found.items()))


def attributes(module, node):
    """(module, name) of each `module.name` in a syntax tree."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            target = definitions(module).get(part.value.id)
            if isinstance(target, tuple) and target[1] is None:
                yield target[0], part.attr


def is_house(module):
    """Whether a module is one of ours, of which only what is reached counts."""
    whole = {name for names in WHOLE.values() for name in names}
    path = f"{module.replace('.', '/')}.py"
    return path.startswith(("lab/", "studies/", "experiments.py")) and path not in whole


@functools.cache
def definitions(module):
    """{name: its syntax tree, or (module, name) of an import} at the top of a module. The name of
    an imported module is None."""
    path, found = HERE / f"{module.replace('.', '/')}.py", {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: (alias.name, None) for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = (HERE / f"{inner.replace('.', '/')}.py").exists()
                target = (inner, None) if is_module else (node.module, alias.name)
                found[alias.asname or alias.name] = target
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target)
                     if isinstance(part, ast.Name)]
            found |= dict.fromkeys(names, node)
    return found
