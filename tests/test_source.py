"""nlts.py reads as the paper: tags of the pseudo code, numbers of equations, no company."""
import io
import os
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from classroom.source import definitions

HERE = Path(__file__).resolve().parent.parent
SOURCE = (HERE / "nlts.py").read_text()
LINES = SOURCE.splitlines()
POSTERIOR = "BayesianLinearRegression"

# tag: where it stands, each place once or more, and what its line must mention
TAGS = {
    "1.1": ("LinearTS.__init__", "arms"),
    "1.2": (f"{POSTERIOR}.sample LinearTS.scores", "mu_hat|sample"),
    "1.3": ("LinearTS.act", "argmax"),
    "1.4": ("LinearTS.update", "reward"),
    "1.5": (f"{POSTERIOR}.update LinearTS.update", "Phi|update"),
    "1.6": (f"{POSTERIOR}.update LinearTS.update", "f|mu_hat|update"),
    "2.1": ("LinearTS.__init__ NeuralLinearTS.__init__", "arms|__init__"),
    "2.2": ("NeuralLinearTS.__init__", "ReplayBuffer"),
    "2.3": ("NeuralLinearTS.phi", "last_layer_activations"),
    "2.4": ("LinearTS.scores", "phi"),
    "2.5": ("LinearTS.scores", "sample"),
    "2.6": ("inverse_gamma_noise", "gamma"),
    "2.7": (f"{POSTERIOR}.sample", "mu_hat"),
    "2.8": ("LinearTS.act", "argmax"),
    "2.9": ("NeuralLinearTS.update", "reward"),
    "2.10": ("NeuralLinearTS.update", "add"),
    "2.11": ("ReplayBuffer.add", "tuples"),
    "2.12": ("NeuralLinearTS.update", "update"),
    "2.13": (f"{POSTERIOR}.update", "Phi|f"),
    "2.14": (f"{POSTERIOR}.update", "mu_hat"),
    "2.15": (f"{POSTERIOR}.update", "a"),
    "2.16": (f"{POSTERIOR}.update", "R2"),
    "2.17": (f"{POSTERIOR}.update", "b"),
    "2.18": ("NeuralLinearTS.learn", "E_old"),
    "2.19": ("NeuralLinearTS.learn", "train"),
    "2.20": ("NeuralLinearTS.learn", "prior"),
    "2.21": ("NeuralLinearTS.learn", "E_new"),
    "2.22": ("likelihood_matching", "match"),
    "2.23": ("likelihood_matching", "weights"),
    "2.24": ("NeuralLinearTS.learn", "update"),
}

# equation: the function or class that computes it
EQUATIONS = {
    1: f"{POSTERIOR}.sample",
    2: f"{POSTERIOR}.update",
    3: "train",
    4: "NeuralLinearTS.update",
    5: "match_mean",
    6: "match_covariance_sdp",
    7: "invertible_prior",
    8: "invertible_prior",
}


FUNCTIONS = {name: (node.lineno, node.end_lineno) for name, node in definitions(SOURCE).items()}


def enclosing(line):
    """The name of the function that a line belongs to."""
    return next((name for name, (first, last) in FUNCTIONS.items() if first <= line <= last), None)


def tags():
    """(tag, function, code of its line or, for a comment line, of the next), top to bottom."""
    for token in tokenize.generate_tokens(io.StringIO(SOURCE).readline):
        if token.type != tokenize.COMMENT:
            continue
        number, column = token.start
        code = LINES[number - 1][:column].strip() or LINES[number].strip()
        for tag in re.findall(r"\[([12]\.\d+)\]", token.string):
            yield tag, enclosing(number), code


def test_each_line_of_pseudo_code_is_tagged_where_it_is_computed():
    found = list(tags())
    for tag, (places, _) in TAGS.items():
        stands = {function for other, function, _ in found if other == tag}
        assert stands == set(places.split()), tag
    for tag, _, code in found:
        word = TAGS[tag][1]
        assert code and not code.startswith("#"), f"[{tag}] stands above no code"
        assert re.search(rf"\b({word})\b", code), f"[{tag}] stands at {code!r}, without {word}"


@pytest.mark.parametrize("algorithm", ["1", "2"])
def test_tags_are_in_the_order_of_the_pseudo_code(algorithm):
    """Within each function; what it calls may stand elsewhere in the file. [2.20] is the head of
    [2.21] to [2.23]: it stands where a prior is asked."""
    order = {}
    for tag, function, _ in tags():
        if tag.startswith(algorithm + ".") and tag != "2.20":
            order.setdefault(function, []).append(int(tag[2:]))
    assert order
    for function, numbers in order.items():
        assert numbers == sorted(numbers), function


@pytest.mark.parametrize("number", EQUATIONS)
def test_each_equation_is_cited_by_number_where_it_is_computed(number):
    first, last = FUNCTIONS[EQUATIONS[number]]
    assert re.search(rf"\bEqs?\. {number}\b", "\n".join(LINES[first - 1:last]))


def test_no_equation_is_cited_by_a_latex_label_or_a_wrong_number():
    assert not re.search(r"Eqs?\. ?\([a-z]|Eqs?\. (?![1-8]\b)", SOURCE)


def test_the_errata_name_tests_that_exist():
    """docs/errata.md numbers its rows, and says for each what shows it."""
    text = (HERE / "docs" / "errata.md").read_text()
    rows = re.findall(r"^\| (\d+) \|.*", text, re.MULTILINE)
    assert [int(number) for number in rows] == list(range(1, len(rows) + 1)) and len(rows) >= 19
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", text)
    assert len(named) >= len(rows)
    for file, test in named:
        assert f"def {test}(" in (HERE / file).read_text(), f"{file}::{test}"


ALONE = """
import numpy as np
import nlts
agent = nlts.NeuralLinearTS(nlts.MLP(4, 3, hidden=5), 3, memory=12, L=20, P=3)
for t in range(41):
    context = np.random.default_rng(t).normal(size=4)
    agent.update(context, agent.act(context), context[0])
print(nlts.__file__, len(agent.buffer.tuples))
"""


def test_it_runs_when_copied_alone_into_an_empty_folder(tmp_path):
    (tmp_path / "nlts.py").write_text(SOURCE)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    path, tuples = done.stdout.split()
    assert Path(path).resolve() == (tmp_path / "nlts.py").resolve() and tuples == "12"
