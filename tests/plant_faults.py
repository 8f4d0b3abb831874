"""Plant faults in nlts.py, one at a time, and print those that the tests of the core do not notice.

    python tests/plant_faults.py [SEED]            some minutes

A fault is an operator, a comparison or a number exchanged; a line, a call, a keyword, a negation or
a transpose dropped. Each function gets one at least, and the tests run on each in a copy of their
own. What is left either changes no result, or shows what a test should look at.
"""
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
TESTS = ["test_nlts.py", "tests/test_agent.py", "tests/test_errors.py", "tests/test_matching.py"]
FILES = ["nlts.py", "nlts_beyond.py", "conftest.py", "pyproject.toml", "tests/oracles.py", *TESTS]
OTHER = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
         ast.Pow: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr,
         ast.Lt: ast.GtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
         ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
         ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And}


def functions(tree):
    """{name: node} of each function and method."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{child.name}": child for child in node.body
                      if isinstance(child, ast.FunctionDef)}
    found |= {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return found


def become(node, other):
    """Put another node in the place of this one."""
    node.__class__, node.__dict__ = other.__class__, other.__dict__


def change(node):
    """Plant the fault that this node can have, in place; what it is, or None."""
    before = ast.unparse(node)
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in OTHER:
        node.op = OTHER[type(node.op)]()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        node.ops[0] = OTHER[type(node.ops[0])]()
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        node.value = node.value + 1 if type(node.value) is int else 2 * node.value + 0.1
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        node.value = not node.value
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        become(node, node.value)
    elif isinstance(node, ast.UnaryOp):
        become(node, node.operand)
    elif isinstance(node, ast.Call) and node.keywords:
        node.keywords = node.keywords[:-1]
    elif isinstance(node, ast.Call) and len(node.args) == 1:
        become(node, node.args[0])
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        become(node, node.func.value)
    else:
        return None
    return f"{before}  ->  {ast.unparse(node)}"


def drop(block, k):
    """Leave out the k-th statement of a block, in place; what it is, or None. Not a line that gives
    a name its value: without it there is an error at once."""
    statement = block[k]
    if isinstance(statement, ast.Assign):
        droppable = isinstance(statement.targets[0], ast.Attribute)
    elif isinstance(statement, ast.Expr):
        droppable = not isinstance(statement.value, ast.Constant)    # a docstring
    else:
        droppable = isinstance(statement, ast.AugAssign)
    if not droppable:
        return None
    block[k] = ast.copy_location(ast.Pass(), statement)
    return f"dropped: {ast.unparse(statement)}"


def places(function):
    """[(node, field, k)] of all faults that a function can have: the number of a node, and, for a
    dropped line, the block and its number there."""
    found = []
    for number, node in enumerate(ast.walk(function)):
        if change(copy.deepcopy(node)) is not None:
            found.append((number, None, None))
        for field, block in ast.iter_fields(node):
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                lines = range(len(block))
                found += [(number, field, k) for k in lines if drop(list(block), k) is not None]
    return found


def plant(source, name, place):
    """What the fault is, and the source with it."""
    tree = ast.parse(source)
    number, field, k = place
    node = list(ast.walk(functions(tree)[name]))[number]
    what = change(node) if field is None else drop(getattr(node, field), k)
    return what, ast.unparse(tree)


def noticed(source, tests=TESTS, timeout=120):
    """Whether tests fail on this nlts.py; a run without an end is noticed."""
    with tempfile.TemporaryDirectory() as folder:
        for file in FILES:
            (Path(folder) / file).parent.mkdir(exist_ok=True)
            shutil.copy(HERE / file, Path(folder) / file)
        (Path(folder) / "nlts.py").write_text(source)
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
                   "--hypothesis-profile=planted", *tests]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(command, cwd=folder, env=environment, timeout=timeout,
                                  capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            return True
    return done.returncode != 0


def main(seed=0, number=40):
    source, rng = (HERE / "nlts.py").read_text(), random.Random(seed)
    if noticed(ast.unparse(ast.parse(source))):
        sys.exit("the tests fail without a fault")
    possible = {name: places(node) for name, node in functions(ast.parse(source)).items()}
    chosen = list(possible)
    chosen += rng.choices(chosen, k=max(number - len(chosen), 0))
    survivors = 0
    for name in chosen:
        what, broken = plant(source, name, rng.choice(possible[name]))
        if not noticed(broken):
            survivors += 1
            print(f"SURVIVED in {name}: {what}", flush=True)
    print(f"{len(chosen)} faults in {len(possible)} functions, {survivors} survived")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
