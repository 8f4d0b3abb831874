"""The student's process: it makes a module of the student's file, runs calls, and replies.

Started by sandbox.py. A request is one line of JSON on stdin, a reply one on stdout; prints go to
stderr. The grader runs the reference by the same `Interpreter`, in its own process.
"""
import __future__

import ast
import contextlib
import json
import os
import signal
import sys
import time
import traceback
import types
from pathlib import Path

import numpy as np

GIVEN = 1_000_000          # our lines are counted from here, so the student's keep their numbers
MOST_NUMBERS = 2 ** 18     # in one array of a reply
DEFINES = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
ANNOTATIONS = __future__.annotations.compiler_flag


# One module from two sources ----------------------------------------------------------------------

def is_blank(node):
    """Whether this function is still to be written."""
    return (isinstance(node, ast.FunctionDef) and len(node.body) <= 2
            and isinstance(node.body[-1], ast.Raise)
            and getattr(node.body[-1].exc, "id", "") == "NotImplementedError")


def name_of(node):
    """The name that a definition or an assignment binds, or None."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", None)


def merge(theirs, ours):
    """Their statements, with ours for each name that we give and have not left blank. Classes are
    merged; of several definitions the last counts, but a blank one never hides a written one."""
    given = {name_of(node): node for node in ours if name_of(node)}
    written = {name_of(node) for node in theirs if not is_blank(node)}
    theirs = [node for node in theirs if not (is_blank(node) and name_of(node) in written)]
    last = {name_of(node): node for node in theirs}
    body = []
    for node in theirs:
        name = name_of(node)
        if name not in given or is_blank(given[name]):
            body.append(node)
        elif last[name] is node:
            if isinstance(given[name], ast.ClassDef):
                parts = [part for other in theirs if isinstance(other, ast.ClassDef)
                         and other.name == name for part in other.body]
                given[name].body = merge(parts, given[name].body)
            body.append(given[name])
    return body + [node for name, node in given.items() if name not in last]


def load(text, name):
    """A module made from source text."""
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


@contextlib.contextmanager
def cpu_limit(seconds):
    """TimeoutError after so many seconds of CPU time, or ten times that on the clock; the kernel
    ends who ignores it."""
    def out_of_time(number, _):
        clock = number == signal.SIGALRM
        raise TimeoutError(f"it did not end in {10 * seconds:g} seconds on the clock" if clock else
                           f"it did not end in {seconds:g} seconds of CPU time")
    if not hasattr(signal, "setitimer"):                         # Windows: the grader's clock
        yield
        return
    import resource
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 2, most))
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, out_of_time)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def run_statements(body, module, seconds):
    """Run a file, statement by statement: one that fails costs itself only. Returns notes. After
    one that takes too long, definitions and imports alone are run."""
    statements, notes = iter(body), []
    for wanted in (ast.stmt, DEFINES):
        with cpu_limit(seconds):
            for node in (node for node in statements if isinstance(node, wanted)):
                try:
                    exec(compile(ast.Module([node], []), "nlts.py", "exec", ANNOTATIONS),
                         module.__dict__)
                except BaseException as error:                   # exit() is one, too
                    notes.append(f"line {node.lineno} was not run: {describe(error)}")
                    if isinstance(error, TimeoutError):
                        break
    return notes


def module_from(student, given, home, seconds):
    """(module nlts, notes): the student's file, with our versions of everything that is given.
    Imports look last in its folder and at the top: a file random.py hides no other module."""
    top = os.getcwd()
    os.chdir(home)
    sys.path += [os.getcwd(), top]
    theirs, ours = ast.parse(student), ast.parse(given)
    module = load(given, "nlts")                                 # for `from nlts import ...`
    module.__dict__.update(display=print, get_ipython=lambda: None)
    ast.increment_lineno(ours, GIVEN)
    return module, run_statements(merge(theirs.body, ours.body), module, seconds)


# Values on the pipe -------------------------------------------------------------------------------

def encode(value):
    """Numbers, texts and lists as JSON holds them, arrays as lists; the type of anything else."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        return encode_array(np.asarray(value))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value[:1000]
    if isinstance(value, int) and abs(value) < 2 ** 63:
        return int(value)
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if hasattr(value, "__float__"):                              # Fraction, Decimal
        return float(value)
    return {"object": type(value).__name__}


def encode_array(value):
    """Its numbers; longdouble and what else is no usual number becomes a float."""
    kind = int if value.dtype.kind in "iu" else float
    if value.dtype.kind in "biufO" and max((value.size, *value.shape)) <= MOST_NUMBERS:
        with contextlib.suppress(TypeError, ValueError):         # objects that are no numbers
            return value.astype(kind).tolist()
    return {"object": f"array of {value.dtype} and shape {value.shape}"}


def decode(value, find):
    """An argument of a step; find: what has a name."""
    if isinstance(value, list):
        return [decode(item, find) for item in value]
    if isinstance(value, dict):
        return find(value["name"]) if "name" in value else \
            np.array(value["array"]).reshape(value["shape"])
    return value


# Scripts ------------------------------------------------------------------------------------------

def describe(error):
    """The error, and the last line of the student's own file that it passed through."""
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


def steady_train(network, buffer, config, rng):
    """Training without chance, for tests: P steps down the gradient of Eq. 3 on all tuples."""
    import torch
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"self.train: rng: expected a generator, got {type(rng).__name__}")
    contexts, arms, rewards = (torch.as_tensor(np.asarray(x)) for x in buffer.arrays())
    weights = list(network.parameters())
    for _ in range(config.P):
        played = network(contexts)[torch.arange(len(arms)), arms]
        slopes = torch.autograd.grad(((played - rewards) ** 2).mean(), weights)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight -= config.lr * slope


def other_match(E_new, s2, **_):
    """A covariance for tests that pass `match`: no solution of Eq. 6."""
    return (1 + s2.sum()) * np.eye(E_new.shape[1]) + E_new.T @ E_new


def error_of(function, *args):
    """The name of the error that a call raises."""
    try:
        function(*args)
    except BaseException as error:                               # whatever it is, it is told
        return type(error).__name__
    return "no error"


def many(times, functions, *args):
    """Draws of functions in turn, a row per turn."""
    return np.array([np.concatenate([np.ravel(function(*args)) for function in functions])
                     for _ in range(times)])


HELPERS = {"np": np, "steady_train": steady_train, "other_match": other_match,
           "error_of": error_of, "many": many}


class Interpreter:
    """Runs scripts of calls on a module, and keeps the objects that they make."""

    def __init__(self, module):
        self.module, self.objects = module, dict(HELPERS)

    def find(self, path):
        """An object, or a name of the module, followed along its attributes."""
        first, *rest = path.split(".")
        found = self.objects[first] if first in self.objects else getattr(self.module, first)
        for name in rest:
            found = found[int(name)] if name.isdigit() else getattr(found, name)
        return found

    def run_step(self, step):
        """Set something, look at something, or call it: the encoded result."""
        if "value" in step:
            owner, _, name = step["path"].rpartition(".")
            return setattr(self.find(owner), name, decode(step["value"], self.find))
        found = self.find(step["path"])
        if "args" not in step:
            return encode(found)
        args = decode(step["args"], self.find)
        kwargs = {name: decode(item, self.find) for name, item in step["kwargs"].items()}
        made = self.objects[step["as"]] = found(*args, **kwargs)
        result = encode(made)
        if encode(args) != encode(decode(step["args"], self.find)):
            raise ValueError("it changes its arguments in place: make a copy first")
        return result

    def run(self, steps, seconds=None):
        """The results of a script, in so many seconds of CPU time; an error ends it."""
        results = []
        try:
            with cpu_limit(seconds) if seconds else contextlib.nullcontext():
                for step in steps:
                    results.append(self.run_step(step))
        except BaseException as error:                           # a student's exit() is one, too
            return {"results": results, "failed": describe(error)}
        return {"results": results}


# The process --------------------------------------------------------------------------------------

def give_up_rights(user, tasks):
    """Limits that the process cannot lift again. user: as root, whom to become; 0 is nobody else.
    tasks: processes and threads; 0 is no limit, where those of the teacher would count."""
    if user:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    try:
        import resource
    except ImportError:                                          # not on Windows
        return
    limits = {"AS": 2 ** 32, "CPU": 3600, "FSIZE": 2 ** 24, "CORE": 0, "NOFILE": 64}
    for name, most in (limits | ({"NPROC": tasks} if tasks else {})).items():
        with contextlib.suppress(ValueError, OSError):           # a lower limit holds, or macOS
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    with contextlib.suppress(OSError):                           # first to go if memory runs out
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")


def load_answer(request):
    """(module, reply) to the request to load a file."""
    try:
        module, notes = module_from(**request)
        return module, {"notes": notes[:10]}
    except BaseException as error:                               # whatever a student's file does
        return None, {"failed": describe(error)}


def main(user, tasks):
    """Load a file, then answer requests to run scripts on it until there are no more."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)                                                # prints are no replies
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    give_up_rights(user, tasks)
    module = None
    for request in map(json.loads, requests):
        if "steps" in request:
            reply = Interpreter(module).run(**request)
        else:
            module, reply = load_answer(request)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
