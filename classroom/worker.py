"""The student's process: it makes a module of the student's file, plays cases on it, and replies.

Started by sandbox.py. A request is one line of JSON on stdin, a reply one on stdout; prints go to
stderr. The grader plays the same cases on the reference, in its own process.
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


def is_patch(node):
    """Whether this sets an attribute: Class.name = function."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)


def name_of(node):
    """The name that a definition or an assignment binds, or None."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", None)


def merge(theirs, ours):
    """Their statements, with ours for each name that we give and have not left blank. Classes are
    merged; of several definitions the last counts."""
    given = {name_of(node): node for node in ours if name_of(node)}
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
    body += [node for name, node in given.items() if name not in last]
    return sorted(body, key=is_patch)                            # `Class.name = f`: after the class


def load(text, name):
    """A module made from source text."""
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


@contextlib.contextmanager
def cpu_limit(seconds):
    """TimeoutError after so many seconds of CPU time, or ten times that on the clock; the kernel
    ends who ignores it."""
    def out_of_time(*_):
        raise TimeoutError(f"it did not end in {seconds:g} seconds of CPU time, or in ten times "
                           "that on the clock")
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
    """Numbers, texts and lists as JSON holds them, arrays as lists; of anything else its type."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        kind = int if value.dtype.kind in "iu" else float            # longdouble becomes a float
        if value.dtype.kind in "biufO" and max((value.size, *value.shape)) <= MOST_NUMBERS:
            with contextlib.suppress(TypeError, ValueError):         # objects that are no numbers
                return value.astype(kind).tolist()
        return f"<array of {value.dtype} and shape {value.shape}>"
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        return value[:1000]
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return f"<{type(value).__name__}>"


def shown(value, most=300):
    """A value in a few words, as a reply holds it or as an array."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list) and (array := numbers_in(value)) is not None:
        text = np.array2string(array, precision=5, threshold=12, edgeitems=3, separator=", ")
        text = f"{' '.join(text.split())} of shape {array.shape}"
    elif isinstance(value, list):
        text = f"[{', '.join(shown(item, most // 3) for item in value[:12])}]"
    else:
        text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) < most else f"{text[:most]} ..."


def numbers_in(value):
    """The array of a number, or of numbers in lists; else None."""
    try:
        array = np.array(value)
    except ValueError:                                           # rows differ in length
        return None
    return array if array.dtype.kind in "biuf" else None


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


class Script:
    """What a case works with. It is played on the reference first, then on a student's module.

    nlts     the module
    random   a generator, the same for both
    steps    [a call in words, None] or [what is looked at, how to compare it], as they come
    results  a result for each step, as the pipe takes it
    told     what the grader says, in cases that are no tests
    """

    def __init__(self, nlts, title=None, seed=0, told=None):
        self.nlts, self.title, self.random = nlts, title, np.random.default_rng(seed)
        self.titles, self.steps, self.results, self.told = [], [], [], told

    def normal(self, *shape):
        return self.random.normal(size=shape or None)

    def test(self, title):
        """Whether this test is to be played now."""
        self.titles.append(title)
        return title == self.title

    def tests(self, given):
        """What is given to the test that is to be played now, of {title: what is given}."""
        return [given[title] for title in given if self.test(title)]

    def call(self, function, *args, **kwargs):
        """The result of a call, which has to leave its arguments as they are."""
        before = encode([args, list(kwargs.values())])
        given = [shown(item) for item in before[0]]
        given += [f"{name}={shown(item)}" for name, item in zip(kwargs, before[1], strict=True)]
        name = getattr(function, "__qualname__", "")
        self.add(f"{name}({', '.join(given)})"[:500])
        result = function(*args, **kwargs)
        if encode([args, list(kwargs.values())]) != before:
            raise RuntimeError("it changes its arguments in place: make a copy first")
        return result

    def add(self, text, check=None, result=None):
        self.steps.append([text, check])
        self.results.append(result)

    def same(self, value, name="", how="close", **options):
        """Compare the result of the last call, or something that has this name, after it."""
        self.add(name, {"how": how} | options, encode(value))

    def play(self, case, seconds=None):
        """The reply: results of a case, in so many seconds of CPU time; an error ends it."""
        try:
            with cpu_limit(seconds) if seconds else contextlib.nullcontext():
                case(self)
        except BaseException as error:                           # a student's exit() is one, too
            return {"results": self.results, "failed": describe(error)}
        return {"results": self.results}


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


def main(user, tasks):
    """Load a file, then answer requests to play cases on it until there are no more."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)                                                # prints are no replies
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    cases = load(Path(__file__).with_name("cases.py").read_text("utf-8"), "nlts_cases")
    give_up_rights(user, tasks)
    module = None
    for request in map(json.loads, requests):
        if "case" in request:
            case, seconds = getattr(cases, request.pop("case")), request.pop("seconds")
            reply = Script(module, **request).play(case, seconds)
        else:
            try:
                module, notes = module_from(**request)
                reply = {"notes": notes[:10]}
            except BaseException as error:                       # whatever a student's file does
                reply = {"failed": describe(error)}
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
