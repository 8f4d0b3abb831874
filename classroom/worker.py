"""The student's process. It runs scripts of calls and answers over a pipe; it never sees a test.

Started by sandbox.py. A request is a line of JSON on stdin, an answer one on stdout: arrays travel
as lists of numbers and a shape, no pickle. What the student's code prints goes to stderr.
The grader runs the reference by the same `Stage`, in a process of its own.
"""
import ast
import contextlib
import ctypes
import json
import os
import platform
import struct
import sys
import traceback
import types
from pathlib import Path

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


def without_torch(body):
    """A stand-in for torch where nothing of it is used but torch.Tensor, for isinstance."""
    parts = [part for node in body for part in ast.walk(node)]
    uses = [part for part in parts if isinstance(part, ast.Name) and part.id == "torch"]
    asked = [part for part in parts if isinstance(part, ast.Attribute) and part.attr == "Tensor"
             and isinstance(part.value, ast.Name) and part.value.id == "torch"]
    if len(uses) > len(asked):
        return body
    stand_in = ast.parse("class torch:\n    class Tensor:\n        pass").body
    return stand_in + [node for node in body if ast.unparse(node) != "import torch"]


def load(code, name):
    """A module made from source text or a tree."""
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    return module


def load_cells(body):
    """The module nlts from a notebook: scratch cells do not run, and what fails costs itself only.
    """
    module = load("def display(*_, **__):\n    pass\n\ndef get_ipython():\n    pass\n", "nlts")
    scratch = (ast.Expr, ast.For, ast.While, ast.With, ast.Assert)
    for node in (node for node in body if not isinstance(node, scratch)):
        try:
            exec(compile(ast.Module([node], []), "nlts.py", "exec"), module.__dict__)
        except BaseException as error:           # exit() in a cell, too
            print(f"not run: {describe(error)}", file=sys.stderr)
    return module


def module_from(student, given, roots, home=".", notebook=False):
    """The student's file as the module nlts, with ours of all that is given."""
    find_helpers(home)
    theirs, ours = ast.parse(student), ast.parse(given)
    ast.increment_lineno(ours, GIVEN)
    extra = set(map(name_of, theirs.body)) - set(map(name_of, ours.body))
    imports = [node for node in ours.body if name_of(node) is None]
    body = needed(imports + merge(theirs.body, ours.body), {*roots} | extra)
    body.sort(key=lambda node: getattr(node, "module", None) != "__future__")
    body = without_torch(body)
    if "NeuralLinearTS" in map(name_of, body):
        warm_up()
    return load_cells(body) if notebook else load(ast.Module(body, []), "nlts")


def find_helpers(home):
    """Work in the folder of the student's file; imports look there, then around it.
    They look there last: a student's random.py hides no other module."""
    top = Path.cwd()
    with contextlib.suppress(OSError, ValueError):               # a name that no folder can have
        os.chdir(home)
    folders = [Path.cwd(), top, *sorted({path.parent for path in top.rglob("*.py")})]
    sys.path += [str(folder) for folder in dict.fromkeys(folders)]


def warm_up():
    """The first step of torch's optimizer takes seconds, which are not the student's."""
    import torch
    weight = torch.nn.Parameter(torch.zeros(1))
    weight.sum().backward()
    torch.optim.Adam([weight]).step()


# Values on the pipe -------------------------------------------------------------------------------

def encode(value):
    """Plain numbers, texts, lists and arrays as JSON can hold them; of other things the type."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(name): encode(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"array": value.ravel().tolist(), "shape": value.shape}
    return {"object": type(value).__name__}


def decode(value, find=None):
    """The inverse of `encode`, for arrays in lists and alone; find: what has a name. A reply may be
    forged: an array of anything but numbers is a ValueError."""
    if isinstance(value, list):
        return [decode(item, find) for item in value]
    if isinstance(value, dict) and "array" in value:
        if not {*map(type, value["array"])} <= {bool, int, float}:
            raise ValueError("an array of numbers was expected")
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


class Stage:
    """A module and the objects that a script has made in it."""

    def __init__(self, module):
        self.module, self.objects = module, {"np": np, "steady_train": steady_train}

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
        if "times" in step:                      # of several functions in turn: a row a turn
            calls = [found, *map(self.find, step["also"])]
            rows = ([call(*args, **kwargs) for call in calls] for _ in range(step["times"]))
            return encode(np.array([flat(row) for row in rows]))
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

# What no solution needs, by number on x86_64 and on aarch64: keys, which outlive a process; mounts
# and namespaces; other processes; memory that nobody counts; a look into the cache of files.
FORBIDDEN = {
    "add_key": (248, 217), "request_key": (249, 218), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "unshare": (272, 97), "setns": (308, 268), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "shmget": (29, 194), "memfd_secret": (447, 447), "mincore": (27, 232), "preadv2": (327, 286),
    "fadvise64": (221, 223), "cachestat": (451, 451)}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}       # column, the kernel's name
KEYCTL, CLONE, CLONE3 = (250, 219), (56, 220), (435, 435)
NEW_NAMESPACES = 0x7E020000                      # flags of clone
ALLOW, REFUSE, MISSING = 0x7FFF0000, 0x00050001, 0x00050026      # REFUSE: EPERM, MISSING: ENOSYS


def kernel_filter(column, machine):
    """A program for the kernel's seccomp that refuses what is forbidden."""
    load, equal, above, bits, give = 0x20, 0x15, 0x35, 0x45, 0x06        # its instructions
    rows = [(load, 0, 0, 4), (equal, 1, 0, machine), (give, 0, 0, REFUSE),
            (load, 0, 0, 0), (above, 0, 1, 0x40000000), (give, 0, 0, REFUSE)]
    for numbers in FORBIDDEN.values():
        rows += [(equal, 0, 1, numbers[column]), (give, 0, 0, REFUSE)]
    rows += [(equal, 0, 1, CLONE3[column]), (give, 0, 0, MISSING)]       # libc then calls clone
    rows += [(equal, 0, 4, CLONE[column]), (load, 0, 0, 16), (bits, 0, 1, NEW_NAMESPACES),
             (give, 0, 0, REFUSE), (give, 0, 0, ALLOW)]
    rows += [(equal, 0, 3, KEYCTL[column]), (load, 0, 0, 16), (equal, 1, 0, 1),  # 1: a new keyring
             (give, 0, 0, REFUSE), (give, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *row) for row in rows)


def seal():
    """A keyring of its own, and no way to what is forbidden. Elsewhere than on Linux: nothing."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        return
    column, machine = MACHINES[platform.machine()]
    libc, program = ctypes.CDLL(None), kernel_filter(column, machine)
    libc.syscall(KEYCTL[column], 1, None)                        # join a new session keyring
    held = ctypes.create_string_buffer(program)
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(held))
    libc.prctl(38, 1, 0, 0, 0)                                   # no new privileges
    libc.prctl(22, 2, head, 0, 0)                                # seccomp, by a filter


def set_limits():
    """Limits that the process cannot lift again. Processes are counted from outside."""
    try:
        import resource
    except ImportError:                                          # not on Windows
        return
    for limit, most in ((resource.RLIMIT_AS, 2 ** 33), (resource.RLIMIT_CPU, 1200),
                        (resource.RLIMIT_FSIZE, 2 ** 26), (resource.RLIMIT_CORE, 0),
                        (resource.RLIMIT_NOFILE, 512)):
        with contextlib.suppress(ValueError, OSError):           # a lower limit holds, or macOS
            resource.setrlimit(limit, (most, most))


def main():
    """Answer requests until there are no more."""
    set_limits()
    seal()
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)                                                # prints are no replies
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
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
