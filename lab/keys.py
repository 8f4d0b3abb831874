"""The key of a run: it is reused if and only if its key is the same.

A key is a hash of the task, of the code that plays it and of its data set's entry in
data/sources.toml. The code is every file that a function of the task comes from, wherever it is,
and every file of the repository (or of that file's folder) that these import, directly or not.
Comments, docstrings and layout are not in a syntax tree, or are taken out.
"""
import ast
import functools
import hashlib
import inspect
import json
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


def short_hash(data):
    """First 12 hex digits of the SHA-256 of plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]


def task_id(task):
    """The hash of a task alone, whatever code plays it."""
    return short_hash(plain(task))


def key(task):
    """The key of a run."""
    code = {place(path): tree_hash(path) for path in files_of(task)}
    return short_hash([task_id(task), code, data_hash(task.dataset)])


def place(path):
    """Where a file is in the repository; elsewhere its name."""
    return str(path.relative_to(HERE) if path.is_relative_to(HERE) else path.name)


def plain(part):
    """Part of a task as plain data: functions and classes by their names."""
    if is_dataclass(part) and not isinstance(part, type):
        return {field.name: plain(getattr(part, field.name)) for field in fields(part)}
    if isinstance(part, functools.partial):
        return [plain(part.func), plain(part.args), plain(part.keywords)]
    if isinstance(part, dict):
        return {name: plain(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [plain(value) for value in part]
    return f"{part.__module__}.{part.__qualname__}" if callable(part) else part


def functions_in(part):
    """The functions and classes in part of a task; itself, if its class is not plain data."""
    if isinstance(part, functools.partial):
        return functions_in([part.func, part.args, part.keywords])
    if isinstance(part, dict):
        return functions_in(list(part.values()))
    if isinstance(part, list | tuple):
        return [function for value in part for function in functions_in(value)]
    if is_dataclass(part) and not isinstance(part, type):
        values = [getattr(part, field.name) for field in fields(part)]
        return [type(part), *functions_in(values)]
    return [part] if callable(part) else []


def files_of(task):
    """The files of code that play a task."""
    todo = [Path(inspect.getfile(function)).resolve() for function in functions_in(task)]
    found = set()
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += imported_by(path)
    return found


@functools.cache
def imported_by(path):
    """The files of the repository, or beside the file, that a file imports."""
    modules = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    names = [f"{module.replace('.', '/')}.py" for module in modules]
    places = [folder / name for name in names for folder in (HERE, path.parent)]
    return [place.resolve() for place in places if place.is_file()]


@functools.cache
def parsed(path):
    """The syntax tree of a file, as it was when it was first asked for."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@functools.cache
def tree_hash(path, name=None):
    """The hash of a file's syntax tree; with a name, of that function or class alone."""
    tree = parsed(path)
    if name:
        tree = next(node for node in tree.body if getattr(node, "name", None) == name)
    return short_hash(without_docstrings(tree))


def without_docstrings(node):
    """A syntax tree as nested lists, the same in every version of Python."""
    if isinstance(node, list):
        return [without_docstrings(part) for part in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
    if isinstance(parts.get("body"), list):
        parts["body"] = [part for part in parts["body"] if not is_text(part)]
    return [type(node).__name__, *([name, without_docstrings(parts[name])] for name in parts)]


def is_text(node):
    """Whether a statement is a text and nothing else."""
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str))


@functools.cache
def data_hash(dataset):
    """The hash of a data set's entry in data/sources.toml, or of a table's bytes."""
    if dataset.endswith(".csv"):
        return hashlib.sha256(Path(dataset).read_bytes()).hexdigest()
    entries = tomllib.loads((HERE / "data/sources.toml").read_text(encoding="utf-8"))
    return short_hash(entries.get(dataset))
