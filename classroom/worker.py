"""The student's process. It runs scripts of calls and answers over a pipe; it never sees a test.

Started by runner.py. A request is a line of JSON on stdin, an answer one on stdout: arrays travel
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

def name_of(node):
    """The name that a statement defines, or None."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def merge(theirs, ours, own, prefix=""):
    """Their statements, but ours for every name of ours that is not in `own`."""
    given = {name_of(node): node for node in ours if name_of(node)}
    last = {name_of(node): node for node in theirs}
    body = []
    for node in theirs:
        name = name_of(node)
        if name not in given or prefix + name in own:
            body.append(node)
        elif last[name] is node:
            if isinstance(node, ast.ClassDef) and isinstance(given[name], ast.ClassDef):
                given[name].body = merge(node.body, given[name].body, own, f"{name}.")
            body.append(given[name])
    return body + [node for name, node in given.items() if name not in last]


def bound(node):
    """The names that a statement binds: a definition's, or those of an import."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return {name_of(node)} - {None}


def used(body, roots):
    """The statements that run something, and those that the roots lead to, name by name."""
    kept = [node for node in body if not bound(node) or bound(node) & {*roots, "*"}]
    rest = [node for node in body if node not in kept]
    fresh = kept
    while fresh:
        names = {item.id for node in fresh for item in ast.walk(node) if isinstance(item, ast.Name)}
        fresh = [node for node in rest if bound(node) & names]
        kept = kept + fresh
        rest = [node for node in rest if node not in fresh]
    return [node for node in body if node in kept]


def compose(student, given, own, roots):
    """The student's file as a tree, with the given version of everything that is not in `own`.

    Of given code, only what the roots or the student's code need: torch is slow to import.
    """
    theirs, ours = ast.parse(student), ast.parse(given)
    ast.increment_lineno(ours, GIVEN)
    body = merge(theirs.body, ours.body, set(own))
    extra = {name for node in theirs.body for name in bound(node) if name_of(node)}
    known = {name for node in ours.body for name in bound(node)}
    imports = [node for node in ours.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    body = used(imports + body, {*roots} | extra - known)
    future = [node for node in body if getattr(node, "module", None) == "__future__"]
    return ast.Module(future + [node for node in body if node not in future], [])


def module_from(student, given, own, roots):
    """The composed module, importable as nlts."""
    code = compile(compose(student, given, own, roots), "nlts.py", "exec")
    module = sys.modules["nlts"] = types.ModuleType("nlts")
    exec(code, module.__dict__)
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
        self.module = module
        self.objects = {}

    def value(self, given):
        """An argument: a copy of an array, an object made before, a generator, a given function."""
        if isinstance(given, list):
            return [self.value(item) for item in given]
        if isinstance(given, dict) and "handle" in given:
            return self.objects[given["handle"]]
        if isinstance(given, dict) and "rng" in given:
            return np.random.default_rng(given["rng"])
        if isinstance(given, dict) and "name" in given:
            return getattr(self.module, given["name"])
        return decode(given)

    def find(self, step):
        """What a step is about: an object, or the module, followed along a path."""
        found = self.module if step["on"] is None else self.objects[step["on"]]
        for name in filter(None, step["what"].split(".")):
            found = found[int(name)] if name.isdigit() else getattr(found, name)
        return found

    def run_step(self, step):
        """The encoded result of one step."""
        if step["do"] == "let":
            self.objects[step["as"]] = self.value(step["value"])
            return None
        if step["do"] == "set":
            setattr(self.objects[step["on"]], step["what"], self.value(step["value"]))
            return None
        if step["do"] == "get":
            return encode(self.find(step))
        arguments = [self.value(item) for item in step["args"]]
        keywords = {name: self.value(item) for name, item in step["kwargs"].items()}
        if "times" in step:
            function = self.find(step)
            return encode(np.array([flat(function(*arguments, **keywords))
                                    for _ in range(step["times"])]))
        result = self.find(step)(*arguments, **keywords)
        self.objects[step.get("as")] = result
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


def run_student_test(source):
    """Run a student's pytest file on the module nlts: how many tests passed and failed."""
    import pytest
    count = {"passed": 0, "failed": 0, "skipped": 0, "errors": 0}

    class Counter:
        def pytest_runtest_logreport(self, report):
            if report.when == "call" or report.outcome == "skipped":
                count[report.outcome] += 1
            elif report.failed:
                count["errors"] += 1

        def pytest_collectreport(self, report):
            count["errors"] += report.failed

    folder = os.environ["TMPDIR"]
    path = os.path.join(folder, "test_of_student.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", folder, "-c", os.devnull]
    pytest.main([path, *options], plugins=[Counter()])
    return count


# The process --------------------------------------------------------------------------------------

def set_limits(memory):
    """Limits that the process cannot lift again. Processes are counted by the runner."""
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


def answer(request, stage):
    """Do what a request asks; returns the stage to go on with, and the reply."""
    if "student" in request:
        set_limits(request["memory"])
        parts = [request[name] for name in ("student", "given", "own", "roots")]
        try:
            module = module_from(*parts)
        except BaseException as error:                           # whatever a student's file does
            return None, {"failed": describe(error)}
        return Stage(module), {"loaded": True}
    if "test" in request:
        return stage, run_student_test(request["test"])
    return stage, Stage(stage.module).run(request["steps"])


def main():
    """Answer requests until there are no more."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)                                                # prints are no replies
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.path.append(os.getcwd())                 # last: a student's random.py hides no other module
    stage = None
    for line in requests:
        stage, reply = answer(json.loads(line), stage)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


if __name__ == "__main__":
    main()
