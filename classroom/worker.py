"""The student's process. It runs scripts of calls and answers over a pipe; it never sees a test.

Started by sandbox.py. A request is a line of JSON on stdin, an answer one on stdout: arrays travel
as lists of numbers and a shape, no pickle. What the student's code prints goes to stderr.
The grader runs the reference by the same `Stage`, in a process of its own.
"""
import ast
import contextlib
import json
import os
import sys
import traceback
import types

import numpy as np

GIVEN = 1_000_000          # given lines are counted from here, so that the student's own stay as is


# One module from two sources ----------------------------------------------------------------------

def is_blank(node):
    """Whether this is a function that is still to be written."""
    return (isinstance(node, ast.FunctionDef) and len(node.body) <= 2
            and ast.unparse(node.body[-1]) == "raise NotImplementedError")


def name_of(node):
    """The name that a definition or an assignment binds, or None."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", None)


def merge(theirs, ours):
    """Their statements, but ours for every name that we give and have not left blank."""
    given = {name_of(node): node for node in ours if name_of(node)}
    last = {name_of(node): node for node in theirs}
    body = []
    for node in theirs:
        name = name_of(node)
        if name not in given or is_blank(given[name]):
            body.append(node)
        elif last[name] is node:
            if isinstance(node, ast.ClassDef) and isinstance(given[name], ast.ClassDef):
                given[name].body = merge(node.body, given[name].body)
            body.append(given[name])
    return body + [node for name, node in given.items() if name not in last]


def needed(body, roots):
    """What binds no name, and what the roots lead to: an import of torch takes seconds."""
    binds = {node: {name_of(node)} for node in body}
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            binds[node] = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    names, kept = {*roots, None, "*"}, set()
    while fresh := {node for node in body if binds[node] & names} - kept:
        kept |= fresh
        names = {item.id for node in fresh for item in ast.walk(node) if isinstance(item, ast.Name)}
    return [node for node in body if node in kept]


def load(code, name):
    """A module made from source text or a tree."""
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    return module


def module_from(student, given, roots):
    """The student's file as the module nlts, with ours of all that is given."""
    theirs, ours = ast.parse(student), ast.parse(given)
    ast.increment_lineno(ours, GIVEN)
    extra = set(map(name_of, theirs.body)) - set(map(name_of, ours.body))
    imports = [node for node in ours.body if name_of(node) is None]
    body = needed(imports + merge(theirs.body, ours.body), {*roots} | extra)
    body.sort(key=lambda node: getattr(node, "module", None) != "__future__")
    return load(ast.Module(body, []), "nlts")


# Values on the pipe -------------------------------------------------------------------------------

def encode(value):
    """Plain numbers, texts, lists and arrays as JSON can hold them; of other things the type."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str, dict)):
        return value
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"array": value.ravel().tolist(), "shape": value.shape}
    return {"object": type(value).__name__}


def decode(value, find=None):
    """The inverse of `encode`, for arrays in lists and alone; find: what has a name."""
    if isinstance(value, list):
        return [decode(item, find) for item in value]
    if isinstance(value, dict) and "array" in value:
        return np.array(value["array"]).reshape(value["shape"])
    if find and isinstance(value, dict) and "name" in value:
        return find(value["name"])
    return value


def flat(value):
    """All numbers in a result, one after the other."""
    if isinstance(value, (list, tuple)):
        return np.concatenate([flat(item) for item in value])
    return np.ravel(np.asarray(value, float))


# Scripts ------------------------------------------------------------------------------------------

def describe(error):
    """What went wrong, and the last line of the student's own file that it passed through."""
    message, place, within = str(error), "", "a function"
    if isinstance(error, SyntaxError):
        message, place = error.msg, f" (line {error.lineno} of your file)"
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == "nlts.py":
            within = frame.f_code.co_name
            if line < GIVEN:
                place = f" (line {line} of your file, in {within})"
    if isinstance(error, NotImplementedError):
        return f"{within} is not written yet"
    return f"{type(error).__name__}: {message[:300]}{place}"


class Stage:
    """A module and the objects that a script has made in it."""

    def __init__(self, module):
        self.module, self.objects = module, {}

    def find(self, path):
        """An object, or a name of the module, followed along its attributes."""
        first, *rest = path.split(".")
        found = self.objects[first] if first in self.objects else getattr(self.module, first)
        for name in rest:
            found = found[int(name)] if name.isdigit() else getattr(found, name)
        return found

    def run_step(self, step):
        """Set something, look at something, or call it, perhaps many times: the encoded result."""
        if "value" in step:
            owner, _, name = step["path"].rpartition(".")
            return setattr(self.find(owner), name, decode(step["value"], self.find))
        found = self.find(step["path"])
        if "args" not in step:
            return encode(found)
        args = decode(step["args"], self.find)
        kwargs = {name: decode(item, self.find) for name, item in step["kwargs"].items()}
        if "times" in step:
            return encode(np.array([flat(found(*args, **kwargs)) for _ in range(step["times"])]))
        result = self.objects[step["as"]] = found(*args, **kwargs)
        return encode(result)

    def run(self, steps):
        """The results of a script; an error ends it."""
        results = []
        for step in steps:
            try:
                results.append(self.run_step(step))
            except BaseException as error:                       # a student's exit() is one, too
                return {"results": results, "failed": describe(error)}
        return {"results": results}


# The process --------------------------------------------------------------------------------------

def set_limits():
    """Limits that the process cannot lift again. Processes are counted from outside."""
    try:
        import resource
    except ImportError:                                          # not on Windows
        return
    for limit, most in ((resource.RLIMIT_AS, 2 ** 33), (resource.RLIMIT_CPU, 1200),
                        (resource.RLIMIT_FSIZE, 2 ** 26), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):           # a lower limit holds, or macOS
            resource.setrlimit(limit, (most, most))


def main():
    """Answer requests until there are no more."""
    set_limits()
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)                                                # prints are no replies
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path.append(os.getcwd())                 # last: a student's random.py hides no other module
    module = None
    for request in map(json.loads, requests):
        if "steps" in request:
            reply = Stage(module).run(request["steps"])
        else:
            try:
                module, reply = module_from(**request), {}
            except BaseException as error:                       # whatever a student's file does
                reply = {"failed": describe(error)}
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


if __name__ == "__main__":
    main()
