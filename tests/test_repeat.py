"""Five short runs repeat to the last digit, where kernels can be pinned and versions are ours."""
import json
import subprocess
import sys
from importlib.metadata import version

import pytest
from made_programs import HERE

from lab import kernels

VERSIONS = {"numpy": "2.4", "scipy": "1.17", "torch": "2.13.0"}      # what they begin with
KNOWN = [  # data set, algorithm, steps, at equal settings; reward, share of exploring plays
    ("statlog", "both-priors", 500, False, 345, 0.265432),
    ("mushroom", "carried", 500, True, 325, 0.119433),
    ("adult", "neural-linear", 400, False, 278, 0.169192),
    ("statlog", "linear", 600, False, 403, 0.267918),
    ("adult", "greedy", 400, True, 243, 0.0),
]
SCRIPT = """
import json, sys
from lab import kernels                               # before NumPy
from lab.recipes import RECIPES, at_equal_settings, with_settings
from lab.runs import Task, run_task

found = []
for dataset, name, steps, equal, *_ in json.loads(sys.argv[1]):
    recipe = RECIPES[name]
    recipe = at_equal_settings(recipe) if equal else with_settings(recipe, L=100, P=100)
    result = run_task(Task("repeat", dataset, name, recipe, steps))
    found.append([result["reward"], result["explored"]])
print(json.dumps(found))
"""


@pytest.mark.skipif("avx2" not in kernels.processor("flags").split(),
                    reason="the known rewards are those of processors with AVX2")
@pytest.mark.skipif(not all(version(name).startswith(begin) for name, begin in VERSIONS.items()),
                    reason=f"the known rewards are those of {VERSIONS}")
def test_five_short_runs_have_the_known_rewards():
    """In a process of its own, so that kernels are pinned before NumPy is imported."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(KNOWN)], cwd=HERE, check=True,
                          capture_output=True, text=True)
    assert json.loads(done.stdout) == [list(known[4:]) for known in KNOWN]
