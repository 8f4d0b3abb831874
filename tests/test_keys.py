"""A run is reused if and only if its key is the same; priors and noises of your own."""
import json
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
from made_programs import copy_of_program, edited, measure

import nlts
import nlts_beyond
from lab import keys, own, runs
from lab.options import Options
from lab.recipes import RECIPES, at_equal_settings, with_arguments, with_settings

SCRIPT = """
import json, sys
from pathlib import Path
from lab import keys, own, runs
from lab.options import Options

names = "linear", "carried", "printed"
algorithms = own.algorithms(Options("table", algorithms=names, prior=Path("own/my_prior.py")))
tasks = {name: runs.Task("table", "statlog", name, recipe, 50)
         for name, recipe in algorithms.items()}
tasks["adult"] = runs.Task("table", "adult", "linear", algorithms["linear"], 50)
for edits in json.loads(sys.argv[1]):
    texts = {Path(path): Path(path).read_text(encoding="utf-8") for path, _, _ in edits}
    for path, old, new in edits:
        text = Path(path).read_text(encoding="utf-8")
        assert text.count(old) == 1, (path, old, text.count(old))
        Path(path).write_text(text.replace(old, new), encoding="utf-8")
    for cached in (keys.imported_by, keys.parsed, keys.tree_hash, keys.data_hash):
        cached.cache_clear()
    print(json.dumps({name: keys.key(task) for name, task in tasks.items()}))
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
"""
MY_PRIOR = '''"""A prior of my own."""
import helper


def half_forgotten(forgotten, E_old, E_new, weights, lam):
    """Keep half of the old precision, and the last layer's weights."""
    return [(old.precision / helper.SHARE, w) for old, w in zip(forgotten, weights)]
'''
HELPER = "SHARE = 2  # or 3\n"
STATLOG = {"linear", "carried", "printed", "half_forgotten"}
ALL = STATLOG | {"adult"}
CHANGES = [  # file, what stands there, what is put there, which keys differ
    ("nlts.py", "lam: float = 0.25", "lam: float = 0.26", ALL),
    ("datasets.py", "JITTER = 0.25", "JITTER = 0.26", ALL),
    ("lab/files.py", "timeout=30", "timeout=31", ALL),
    ("lab/fast.py", "beta1=0.9, ", "beta1=0.8, ", ALL),
    ("lab/runs.py", "np.ones((len(problem), 1))", "np.zeros((len(problem), 1))", ALL),
    ("nlts_beyond.py", "def pooled_noise", "def unused():\n    return 1\n\n\ndef pooled_noise",
     {"carried"}),
    ("lab/agents.py", "LEAST = 1e-5", "LEAST = 1e-6", {"printed"}),
    ("own/my_prior.py", "old.precision / helper", "old.precision * helper", {"half_forgotten"}),
    ("own/helper.py", "SHARE = 2", "SHARE = 3", {"half_forgotten"}),
    ("data/sources.toml", "rows = 43500", "rows = 43499", STATLOG),
]
WORDS = [  # of which no key takes notice: words, layout, pictures, what other tasks use
    ("data/sources.toml", "[financial]", "[new]\nrows = 9\n\n[financial]"),
    ("nlts.py", '"""The features (g,) of a context (d,)."""', '"""Features."""'),
    ("nlts.py", "# nothing fails below this line", "# below nothing fails"),
    ("lab/runs.py", "import hashlib\n", "import hashlib\n\n\n"),
    ("own/helper.py", "# or 3", "# or 4"),
    ("lab/report.py", "dpi=150", "dpi=151"),
    ("lab/results.py", "time.sleep(1)", "time.sleep(2)"),
    ("lab/recipes.py", '"L": 100', '"L": 101'),
]


def test_a_change_is_noticed_where_it_matters(tmp_path):
    """Keys in a copy of the program: as it is, and after each change alone."""
    program = copy_of_program(tmp_path)
    (program / "own").mkdir()
    (program / "own/my_prior.py").write_text(MY_PRIOR, encoding="utf-8")
    (program / "own/helper.py").write_text(HELPER, encoding="utf-8")
    edits = json.dumps([[], WORDS, *([change[:3]] for change in CHANGES)])
    done = subprocess.run([sys.executable, "-c", SCRIPT, edits], cwd=program, check=True,
                          capture_output=True, text=True, encoding="utf-8")
    before, words, *after = map(json.loads, done.stdout.splitlines())
    assert words == before
    for (path, _, new, expected), found in zip(CHANGES, after, strict=True):
        noticed = {name for name in ALL if found[name] != before[name]}
        assert noticed == expected, (path, new)
    task = runs.Task("table", "statlog", "carried", RECIPES["carried"], 50)
    assert keys.key(task) == before["carried"]        # neither the folder nor the process counts


def test_the_key_has_every_part_of_a_task(tmp_path):
    recipe = RECIPES["both-priors"]
    task = runs.Task("table", "statlog", "both-priors", recipe, 50)
    changes = [{}, {"run": 1}, {"seed": 1}, {"experiment": "x"}, {"dataset": "adult"},
               {"steps": 51}, {"variant": "x"}, {"drift": True}, {"observer": runs.Regret},
               {"recipe": replace(recipe, memory=99)},
               {"recipe": replace(recipe, network=nlts.MLP)},
               {"recipe": with_settings(recipe, b0=0.6)},
               {"recipe": with_arguments(recipe, prior=nlts.no_prior)},
               {"recipe": with_arguments(recipe, prior=partial(
                   nlts.likelihood_matching, match=nlts.match_covariance))},
               {"recipe": at_equal_settings(recipe)}]
    assert len({keys.key(replace(task, **change)) for change in changes}) == len(changes)


def test_a_table_of_your_own_counts_by_its_contents(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("x,class\n1,a\n2,b\n", encoding="utf-8")
    before = keys.data_hash(str(path))
    edited(path, "2,b", "3,b")
    keys.data_hash.cache_clear()
    assert keys.data_hash(str(path)) != before


# Priors and noises of your own --------------------------------------------------------------------

@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """Writes a file of one's own; its module is forgotten after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)

    def write(text, name="my_prior.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    yield write
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_functions_with_the_arguments_of_a_prior_are_algorithms(own_file):
    own_file(HELPER, "helper.py")
    path = own_file(MY_PRIOR + """
from nlts import no_prior                   # imported: not one of mine

def with_default(forgotten, E_old, E_new, weights, lam, share=2):
    return half_forgotten(forgotten, E_old, E_new, weights, lam)

def other(forgotten, E_old, E_new, weights):
    return None

another = 3
""")
    found = own.algorithms(Options("table", algorithms=("linear", "carried"), prior=path))
    assert list(found) == ["linear", "carried", "half_forgotten", "with_default"]
    recipe = found["half_forgotten"]
    assert recipe.memory == 100 and recipe.arguments["prior"].__name__ == "half_forgotten"
    assert replace(recipe, arguments={}) == replace(RECIPES["both-priors"], arguments={})


def test_a_noise_is_played_with_limited_and_with_full_memory_and_kept_at_equal_settings(own_file):
    path = own_file("def calm(arms, config, rng):\n    return [0.1] * len(arms)\n", "my_noise.py")
    found = own.algorithms(Options("equal", algorithms=("linear",), noise=path))
    assert list(found) == ["linear", "calm, both-priors", "calm, neural-linear"]
    limited, full = (at_equal_settings(found[name]) for name in list(found)[1:])
    assert limited.arguments["noise"].__name__ == full.arguments["noise"].__name__ == "calm"
    assert (limited.memory, full.memory) == (100, None)
    assert at_equal_settings(found["linear"]).arguments["noise"] is nlts_beyond.pooled_noise


PRIOR = "def {}(forgotten, E_old, E_new, weights, lam):\n    return 1\n"


@pytest.mark.parametrize("name, text, words", [
    ("my_prior.py", "def f(x):\n    return x\n", r"my_prior.py: expected a function of \(forgot"),
    ("my_prior.py", PRIOR.format("carried"), "my_prior.py: expected another name, carried is an"),
    ("time.py", PRIOR.format("f"), "time.py: expected another name, time is a module"),
    ("csv.py", PRIOR.format("f"), "csv.py: expected another name, csv is a module"),
    ("my prior.py", PRIOR.format("f"), "expected a name such as my_prior.py"),
    ("prior.txt", PRIOR.format("f"), "expected a name such as my_prior.py")])
def test_what_is_not_an_algorithm_of_its_own_is_refused(own_file, name, text, words):
    with pytest.raises(SystemExit, match=words):
        own.algorithms(Options("table", prior=own_file(text, name)))


def test_an_error_in_the_file_is_told_with_its_line(own_file):
    with pytest.raises(SyntaxError) as error:
        own.load(own_file("x = 1\ndef f(:\n"))
    assert error.value.filename.endswith("my_prior.py") and error.value.lineno == 2


@pytest.mark.slow
def test_a_prior_of_your_own_is_played_anew_when_a_number_in_it_has_changed(tmp_path):
    """As a new user would, from a folder that is not the program's."""
    program = copy_of_program(tmp_path)
    (tmp_path / "my_prior.py").write_text(MY_PRIOR, encoding="utf-8")
    (tmp_path / "helper.py").write_text(HELPER, encoding="utf-8")
    (tmp_path / "nlts.py").write_text("raise ImportError('not ours')\n", encoding="utf-8")
    arguments = ["forgetting", "--prior", "../my_prior.py", "--algorithms", "linear", "--runs", "2",
                 "--steps", "1000", "--jobs", "2", "--out", str(tmp_path / "out")]
    first, words = measure(program, *arguments)
    assert "0 runs on file, 4 to play" in words
    assert [one["algorithm"] for one in first] == ["half_forgotten"] * 2 + ["linear"] * 2
    edited(tmp_path / "helper.py", "# or 3", "# or 4")
    assert "4 runs on file, 0 to play" in measure(program, *arguments)[1]
    edited(tmp_path / "helper.py", "SHARE = 2", "SHARE = 50")
    again, words = measure(program, *arguments)
    assert "2 runs on file, 2 to play" in words
    assert [one["regret"] for one in again] != [one["regret"] for one in first[:2]]
