"""A run is reused if and only if its key is the same; priors and noises of your own."""
import sys
from dataclasses import replace
from functools import partial
from unittest import mock

import pytest
from made_programs import copy_of_program, edited, measure

import nlts
import nlts_beyond
from lab import keys, own, runs
from lab.options import Options
from lab.recipes import RECIPES, at_equal_settings, with_arguments, with_settings

MY_PRIOR = '''"""A prior of my own."""
import helper


def half_forgotten(forgotten, E_old, E_new, weights, lam):
    """Keep half of the old precision, and the last layer's weights."""
    return [(old.precision / helper.SHARE, w) for old, w in zip(forgotten, weights)]
'''
HELPER = "SHARE = 2  # or 3\n"
PLAYS = {"nlts.py", "datasets.py", "lab/files.py", "lab/fast.py", "lab/keys.py", "lab/runs.py"}


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """Writes a file of one's own; its module is forgotten after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text, name="my_prior.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    with mock.patch.dict(sys.modules):
        yield write


def forget_files():
    """As in a process that has read no file yet."""
    for cached in (keys.imported_by, keys.parsed, keys.tree_hash, keys.data_hash):
        cached.cache_clear()


def key_of(task):
    """The key, of files as they are now."""
    forget_files()
    return keys.key(task)


@pytest.mark.parametrize("name, more", [
    ("linear", set()), ("carried", {"nlts_beyond.py"}), ("printed", {"lab/agents.py"}),
    ("half_forgotten", {"my_prior.py", "helper.py"})])
def test_a_key_has_the_files_that_play_its_run_and_no_others(own_file, name, more):
    """By their places in the repository: its folder does not count."""
    helper, path = own_file(HELPER, "helper.py"), own_file(MY_PRIOR)
    recipe = own.algorithms(Options("table", algorithms=tuple(RECIPES), prior=path))[name]
    task = runs.Task("table", "statlog", name, recipe, 50)
    assert {keys.place(path) for path in keys.files_of(task)} == PLAYS | more
    before = key_of(task)
    edited(helper, "# or 3", "# or 4")
    assert key_of(task) == before
    edited(helper, "SHARE = 2", "SHARE = 3")
    assert (key_of(task) == before) == ("helper.py" not in more)


CODE = '''"""Words."""
import math  # why

class Circle:
    """More words."""

    def area(self, r):
        """Its area."""
        return math.pi * r ** 2
'''


@pytest.mark.parametrize("old, new, noticed", [
    ('"""Words."""', '"""Others."""', False), ('    """More words."""\n', "", False),
    ("Its area", "How large it is", False), ("# why", "# who knows", False),
    ("math.pi * r ** 2", "(math.pi\n                * r ** 2)", False),
    ("math.pi *", "math.pi /", True), ("import math", "import math\nunused = 1", True)])
def test_of_a_file_its_code_counts_and_not_its_words(tmp_path, old, new, noticed):
    hashes = set()
    for name, text in ("a.py", CODE), ("b.py", CODE.replace(old, new)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        hashes.add(keys.tree_hash(tmp_path / name))
    assert len(hashes) == 1 + noticed


def test_the_key_has_every_part_of_a_task():
    recipe = RECIPES["both-priors"]
    task = runs.Task("table", "statlog", "both-priors", recipe, 50)
    priors = [nlts.no_prior, *(partial(nlts.likelihood_matching, match=match) for match in (
        nlts.match_covariance, nlts.match_covariance_sdp, nlts_beyond.pooled_noise))]
    changes = [{}, {"run": 1}, {"seed": 1}, {"experiment": "x"}, {"dataset": "adult"},
               {"steps": 51}, {"variant": "x"}, {"drift": True}, {"observer": runs.Regret},
               {"recipe": replace(recipe, memory=99)},
               {"recipe": replace(recipe, network=nlts.MLP)},
               {"recipe": with_settings(recipe, b0=0.6)},
               *({"recipe": with_arguments(recipe, prior=prior)} for prior in priors),
               {"recipe": at_equal_settings(recipe)}]
    assert len({keys.key(replace(task, **change)) for change in changes}) == len(changes)
    files = keys.files_of(replace(task, recipe=with_arguments(recipe, prior=priors[-1])))
    assert "nlts_beyond.py" in map(keys.place, files)            # of what a function is given


def test_a_data_set_counts_by_its_entry_and_a_table_of_your_own_by_its_contents(
        tmp_path, monkeypatch, request):
    request.addfinalizer(forget_files)
    monkeypatch.setattr(keys, "HERE", tmp_path)
    (tmp_path / "data").mkdir()
    table, sources = tmp_path / "own.csv", tmp_path / "data/sources.toml"
    task = runs.Task("table", "flowers", "linear", RECIPES["linear"], 50)
    own_task = replace(task, dataset=str(table))
    table.write_text("x,class\n1,a\n2,b\n", encoding="utf-8")
    sources.write_text("[flowers]\nrows = 600\n\n[trees]\nrows = 8\n", encoding="utf-8")
    before = key_of(task), key_of(own_task)
    edited(sources, "rows = 8", "rows = 9")
    assert (key_of(task), key_of(own_task)) == before
    edited(sources, "rows = 600", "rows = 601")
    edited(table, "2,b", "3,b")
    assert key_of(task) != before[0] and key_of(own_task) != before[1]


# Priors and noises of your own --------------------------------------------------------------------

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
    ("my_prior.py", "def f(x):\n    return x\n", r"my_prior.py: expected `def name\(forgotten"),
    ("my_prior.py", "f = lambda forgotten, E_old, E_new, weights, lam: []\n", "expected `def name"),
    ("my_prior.py", PRIOR.format("carried"), "my_prior.py: expected another name, carried is an"),
    ("time.py", PRIOR.format("f"), "time.py: expected another name, time is a module"),
    ("my prior.py", PRIOR.format("f"), "expected a name such as my_prior.py"),
    ("prior.txt", PRIOR.format("f"), "expected a name such as my_prior.py")])
def test_what_is_not_an_algorithm_of_its_own_is_refused(own_file, name, text, words):
    with pytest.raises(SystemExit, match=words):
        own.algorithms(Options("table", prior=own_file(text, name)))


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
    assert [result["algorithm"] for result in first] == ["half_forgotten"] * 2 + ["linear"] * 2
    edited(tmp_path / "helper.py", "# or 3", "# or 4")
    assert "4 runs on file, 0 to play" in measure(program, *arguments)[1]
    edited(tmp_path / "helper.py", "SHARE = 2", "SHARE = 50")
    again, words = measure(program, *arguments)
    assert "2 runs on file, 2 to play" in words
    assert [result["regret"] for result in again] != [result["regret"] for result in first[:2]]
