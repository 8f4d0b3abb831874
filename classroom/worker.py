"""The student's process. It runs scripts of calls and answers over a pipe; it never sees a test.

Started by sandbox.py. A request is a line of JSON on stdin, an answer one on stdout: arrays travel
as base64 of float64 or int64 and a shape, no pickle. What the student's code prints goes to stderr.
The grader runs the reference by the same `Stage`, in a process of its own.
"""
import ast
import base64
import json
import os
import sys
import types

import numpy as np

GIVEN = 1_000_000          # given lines are counted from here, so that the student's own stay as is
GIGABYTE = 2 ** 30


# One module from two sources ----------------------------------------------------------------------

def names_of(node):
    """The names that a statement binds: a definition's, an assignment's, or those of an import."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return {node.targets[0].id}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return set()


def is_import(node):
    return isinstance(node, (ast.Import, ast.ImportFrom))


def merge(theirs, ours, own, prefix=""):
    """Their statements, but ours for every name of ours that is not in `own`."""
    given = {name: node for node in ours if not is_import(node) for name in names_of(node)}
    last = {name: node for node in theirs if not is_import(node) for name in names_of(node)}
    body = []
    for node in theirs:
        name = None if is_import(node) else next(iter(names_of(node)), None)
        if name not in given or prefix + name in own:
            body.append(node)
        elif last[name] is node:
            if isinstance(node, ast.ClassDef) and isinstance(given[name], ast.ClassDef):
                given[name].body = merge(node.body, given[name].body, own, f"{name}.")
            body.append(given[name])
    return body + [node for name, node in given.items() if name not in last]


def needed(body, roots):
    """The statements that bind no name, and those that the roots lead to: torch is slow to import.
    """
    kept = {node for node in body if not names_of(node) or names_of(node) & {*roots, "*"}}
    fresh = kept
    while fresh:
        names = {item.id for node in fresh for item in ast.walk(node) if isinstance(item, ast.Name)}
        fresh = {node for node in body if names_of(node) & names} - kept
        kept = kept | fresh
    return [node for node in body if node in kept]


def module_from(student, given, own, roots):
    """The student's file as the module nlts, with ours of all that is not in `own`."""
    theirs, ours = ast.parse(student), ast.parse(given)
    ast.increment_lineno(ours, GIVEN)
    known = {name for node in ours.body for name in names_of(node)}
    extra = {name for node in theirs.body if not is_import(node) for name in names_of(node)} - known
    body = [node for node in ours.body if is_import(node)]
    body += merge(theirs.body, ours.body, set(own))
    body = needed(body, {*roots} | extra)
    body.sort(key=lambda node: getattr(node, "module", None) != "__future__")
    module = sys.modules["nlts"] = types.ModuleType("nlts")
    exec(compile(ast.Module(body, []), "nlts.py", "exec"), module.__dict__)
    return module


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
        kind = "<f8" if value.dtype.kind == "f" else "<i8"
        raw = np.ascontiguousarray(value, kind).tobytes()
        return {"array": base64.b64encode(raw).decode(), "kind": kind, "shape": list(value.shape)}
    return {"object": type(value).__name__}


def decode(value):
    """The inverse of `encode`, for arrays in lists and alone; ValueError if it is none of these."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict) or "array" not in value:
        return value
    if value.get("kind") not in ("<f8", "<i8") or not isinstance(value["array"], str):
        raise ValueError("array: expected base64 of float64 or int64")
    shape = tuple(int(n) for n in value["shape"])
    return np.frombuffer(base64.b64decode(value["array"]), value["kind"]).reshape(shape).copy()


# Scripts ------------------------------------------------------------------------------------------

def describe(error):
    """What went wrong, and the last line of the student's own file that it passed through."""
    told = {"error": type(error).__name__, "message": str(error)[:300]}
    if isinstance(error, SyntaxError):
        told |= {"line": error.lineno, "message": error.msg}
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == "nlts.py":
            told |= {"within": code.co_name}
            if trace.tb_lineno < GIVEN:
                told |= {"line": trace.tb_lineno, "function": code.co_name}
        trace = trace.tb_next
    return told


def flat(value):
    """All numbers in a result, one after the other."""
    if isinstance(value, (list, tuple)):
        return np.concatenate([flat(item) for item in value])
    return np.ravel(np.asarray(value, float))


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

    def value(self, given):
        """An argument: a copy of an array, what has a name here, a generator."""
        if isinstance(given, list):
            return [self.value(item) for item in given]
        if isinstance(given, dict) and "name" in given:
            return self.find(given["name"])
        if isinstance(given, dict) and "rng" in given:
            return np.random.default_rng(given["rng"])
        return decode(given)

    def run_step(self, step):
        """Set something, look at something, or call it, perhaps many times: the encoded result."""
        owner, _, name = step["path"].rpartition(".")
        if "value" in step and owner:
            return setattr(self.find(owner), name, self.value(step["value"]))
        if "value" in step:
            self.objects[name] = self.value(step["value"])
            return None
        found = self.find(step["path"])
        if "args" not in step:
            return encode(found)
        args = self.value(step["args"])
        kwargs = {name: self.value(item) for name, item in step["kwargs"].items()}
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


def run_student_test(text):
    """pytest's exit code for a student's file of tests on the module nlts."""
    import pytest
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    folder = os.environ["TMPDIR"]
    path = os.path.join(folder, "test_of_student.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", folder, "-c", os.devnull]
    return int(pytest.main([path, *options]))


# The process --------------------------------------------------------------------------------------

def set_limits(memory):
    """Limits that the process cannot lift again. Processes are counted from outside."""
    try:
        import resource
    except ImportError:                                          # not on Windows
        return
    for limit, most in ((resource.RLIMIT_AS, int(memory * GIGABYTE)), (resource.RLIMIT_CPU, 1200),
                        (resource.RLIMIT_FSIZE, GIGABYTE // 16), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(limit, (most, most))
        except (ValueError, OSError):                            # a lower limit holds, or macOS
            continue


def main():
    """Answer requests until there are no more."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)                                                # prints are no replies
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path.append(os.getcwd())                 # last: a student's random.py hides no other module
    module = None
    for request in map(json.loads, requests):
        if "steps" in request:
            reply = Stage(module).run(request["steps"])
        elif "test" in request:
            reply = {"exit": run_student_test(request["test"])}
        else:
            set_limits(request.pop("memory"))
            try:
                module, reply = module_from(**request), {}
            except BaseException as error:                       # whatever a student's file does
                reply = {"failed": describe(error)}
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


if __name__ == "__main__":
    main()
