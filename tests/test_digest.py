"""A result knows its program: changes that matter are noticed, others are not."""
import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nlts
from lab import digest, runs
from studies import ablation, calibration

HERE = Path(__file__).resolve().parent.parent
SCRIPT = """
import functools, json, sys
from pathlib import Path
from lab import digest, recipes, runs
from lab.options import Options
from studies import ablation, calibration

o = Options("table", steps=50, runs=1)
carried, kept = runs.make_task(o, "statlog", "carried"), calibration.KEPT
mixed = ablation.CHOICES["carried"]["counted twice in Φ⁰"]
tasks = {"carried": (carried, runs.run_task),
         "perfect-prior": (runs.make_task(o, "statlog", "perfect-prior"), runs.run_task),
         "twice": (runs.make_task(o, "statlog", "carried", variant="x", **mixed), runs.run_task),
         "kept": (runs.make_task(o, "statlog", "kept", recipe=kept), calibration.measured_run)}

def programs():
    digest.whole.cache_clear()
    digest.definitions.cache_clear()
    return {name: runs.program_of(*task) for name, task in tasks.items()}

found = [programs()]
for path, old, new in json.loads(sys.stdin.read()):
    text = Path(path).read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old, text.count(old))
    Path(path).write_text(text.replace(old, new), encoding="utf-8")
    found.append(programs())
    Path(path).write_text(text, encoding="utf-8")
print(json.dumps(found))
"""
CARRIED, PERFECT, TWICE, KEPT = "carried", "perfect-prior", "twice", "kept"
ALL = [CARRIED, PERFECT, TWICE, KEPT]
REST = digest.REST
CHANGES = [  # file, what stands there, what is put there, the part that differs, of which tasks
    ("nlts.py", "lam: float = 0.25", "lam: float = 0.26", "nlts.py", ALL),
    ("nlts_beyond.py", "(1 - rho) * carried + rho * w", "(2 - rho) * carried + rho * w",
     "nlts_beyond.py", ALL),
    ("datasets.py", "jitter=0.25", "jitter=0.26", "datasets.py", ALL),
    ("data/sources.toml", "rows = 3713", "rows = 3714", "datasets.py", ALL),
    ("lab/files.py", "len(kinds) > 20", "len(kinds) > 21", "datasets.py", ALL),
    ("lab/fast.py", "beta1=0.9, ", "beta1=0.8, ", "lab/fast.py", ALL),
    ("lab/runs.py", "np.ones((len(problem), 1))", "np.zeros((len(problem), 1))", REST, ALL),
    ("lab/recipes.py", "memory * problem.n_arms if", "memory * 2 if", REST, ALL),
    ("lab/references.py", "history.tuples[seen:]", "history.tuples[:seen]", REST, [PERFECT]),
    ("studies/ablation.py", "old.n + len(E)", "old.n + 1", REST, [TWICE]),
    ("studies/calibration.py", "[(old.precision, w) for", "[(2 * old.precision, w) for", REST,
     [KEPT]),
    ("studies/calibration.py", "LEAST = 5", "LEAST = 6", REST, [KEPT]),
    # words, pictures, comments, layout
    ("nlts.py", '"""The features (g,) of a context (d,)."""', '"""Features."""', None, []),
    ("lab/runs.py", '"""Whether contexts get a constant feature."""', '"""x."""',
     None, []),
    ("studies/ablation.py", "# Other priors", "# Others", None, []),
    ("studies/ablation.py", '"baseline: reward"', '"as it is"', None, []),
    ("studies/calibration.py", "figsize=(9, 1.8", "figsize=(8, 1.8", None, []),
    ("lab/references.py", "self.b[i] * invgamma", "2 * self.b[i] * invgamma", None, []),
    ("lab/runs.py", "time.sleep(1)", "time.sleep(2)", None, []),
    ("lab/recipes.py", 'RECOMMENDED = {"L": 100', 'RECOMMENDED = {"L": 101', None, []),
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Digests of a copy of the program: as it is, and after each change alone."""
    copy = tmp_path_factory.mktemp("copy")
    for name in ("nlts.py", "nlts_beyond.py", "datasets.py"):
        shutil.copy(HERE / name, copy)
    for name in ("lab", "studies", "data"):
        shutil.copytree(HERE / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "script.py").write_text(SCRIPT, encoding="utf-8")
    changes = json.dumps([change[:3] for change in CHANGES])
    done = subprocess.run([sys.executable, "script.py"], cwd=copy, input=changes, check=True,
                          capture_output=True, text=True, encoding="utf-8")
    return json.loads(done.stdout)


@pytest.mark.parametrize("k", range(len(CHANGES)),
                         ids=[f"{path} {new[:20]}" for path, _, new, _, _ in CHANGES])
def test_a_planted_change_is_noticed_where_it_matters(programs, k):
    before, after, (*_, part, tasks) = programs[0], programs[k + 1], CHANGES[k]
    for name in ALL:
        changed = [p for p in before[name] if before[name][p] != after[name][p]]
        assert changed == ([part] if name in tasks else [])


def test_the_copy_has_the_digests_of_the_program(programs):
    """Neither the folder nor the process counts."""
    here = {name: digest.whole(name) for name in digest.WHOLE}
    assert here.items() <= programs[0]["carried"].items()


def test_what_is_reached_is_what_a_run_executes():
    found = set(digest.reached([runs.run_task]))
    assert {"lab.runs.play", "lab.runs.Exploration", "lab.runs.make_problem", "lab.runs.SHOWN",
            "lab.recipes.make_agent"} <= found
    assert not {"lab.runs.execute", "lab.recipes.RECIPES", "lab.runs.progress"} & found
    assert not any(name.startswith(("nlts.", "datasets.", "lab.fast.")) for name in found)
    assert "studies.calibration.phase_errors" in digest.reached([calibration.measured_run])
    assert "lab.runs.run_task" in digest.reached([calibration.measured_run])
    assert set(digest.reached([ablation.matched_rows])) == {"studies.ablation.matched_rows"}
    assert digest.reached([nlts.no_prior]) == {}


def test_a_function_without_a_place_of_its_own_is_refused():
    unnamed = lambda forgotten, *others: None  # noqa: E731
    unnamed.__module__ = "studies.ablation"
    with pytest.raises(ValueError, match="top of its module"):
        digest.reached([unnamed])


def test_a_syntax_tree_is_plain_and_without_docstrings():
    one = digest.plain(ast.parse('def f(x):\n    """Say."""\n    return x + 1  # why\n'))
    two = digest.plain(ast.parse("def f( x ):\n\n    return (x + 1)"))
    assert one == two != digest.plain(ast.parse("def f(x):\n    return x + 2"))
    assert digest.plain(ast.parse("None")) != digest.plain(ast.parse("0"))
