"""The classroom: assignments, bug hunts and their grading, all generated from nlts.py and test_nlts.py.

    python assignments.py                          list the assignments and the planted bugs
    python assignments.py make blr --out DIR       nlts.py with blanks to fill in, tests and a README; `all`: all six
    python assignments.py bug squared-nu --out DIR nlts.py with one wrong line and a picture of what goes wrong
    python assignments.py grade DIR [DIR ...]      points by the teacher's tests on other random cases, in grade.json

An assignment is a pytest marker. A test is marked with the last part of the paper that it needs, so in the folder of
an assignment all tests of its marker fail, and all tests of earlier markers pass; later ones are deselected. In the
folder `all`, who has done parts 1 to k sees exactly the tests of parts 1 to k pass.
"""
import argparse
import ast
import importlib.util
import inspect
import io
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from threading import Lock

import numpy as np

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "nlts.py"


@dataclass(frozen=True)
class Assignment:
    """What to learn, what to read in the paper, which functions to write, and in about how many hours."""
    goal: str
    reads: str
    writes: tuple
    hours: int
    task: str


ASSIGNMENTS = {
    "blr": Assignment(
        "the posterior of one arm, kept exact over 100,000 updates", "Sec. 2, Eqs. (posterior) and (BLR)",
        ("BayesianLinearRegression.update", "BayesianLinearRegression.restart", "BayesianLinearRegression.predict"), 3,
        "Show first, on paper, that one more row below F and a QR decomposition are all of Eq. (BLR). Bad input must\n"
        "be a ValueError that names the argument and leaves the posterior as it was; `_array` helps."),
    "thompson": Assignment(
        "sampling from the posterior, and Algorithm 1", "Sec. 2 and Algorithm 1; Sec. 3, 2",
        ("BayesianLinearRegression.sample", "LinearTS._choose", "LinearTS._observe"), 2,
        "F holds a square root of the precision, not of the covariance. Which triangular system turns a standard\n"
        "normal vector into one of covariance B^-1? And which is inverse gamma, nu or nu^2? The paper prints both."),
    "buffer": Assignment(
        "a replay buffer of limited size that forgets the oldest tuple of the played arm", "Sec. 3, 3",
        ("ReplayBuffer.add", "ReplayBuffer.rows_of", "ReplayBuffer.minibatch"), 2,
        "The tests compare it with a plain list, step by step, and print the shortest sequence of calls that goes\n"
        "wrong. What is stored and what is given out are copies."),
    "invertible": Assignment(
        "the analytical prior, and why it recovers the regression on all data",
        "Sec. 3, discussion; Appendix C, Eqs. (mu_sol) and (sdp_sol)", ("invertible_prior",), 2,
        "Derive it with observations as rows: the paper's E_phi and E_phi_old do not conform as printed. Then prove\n"
        "that prior and buffer together give the posterior of all data, and read the test that checks just that."),
    "matching": Assignment(
        "likelihood matching as a semidefinite program, then its fast solver in the dual",
        "Sec. 3, 4.1 and 4.2, Eqs. (mu_prior) and (sigma_opt)",
        ("match_mean", "match_covariance_sdp", "match_covariance"), 8,
        "Write the program in CVXPY first: it is the oracle of the fast solver. Eq. (sigma_opt) has many solutions;\n"
        "the docstring says which one is wanted. Derive theta(y) and its gradient before you write Newton's method."),
    "limited": Assignment(
        "the whole of Algorithm 2: likelihood matching against catastrophic forgetting",
        "Sec. 3, and Algorithm 2 in Appendix A",
        ("transport", "forgotten", "transported_covariance", "transported_mean", "NeuralLinearTS._choose",
         "NeuralLinearTS._observe", "NeuralLinearTS.learn", "NeuralLinearTS.buffer_features",
         "NeuralLinearTS.compute_priors", "NeuralLinearTS.prior"), 5,
        "Keep the order of the pseudo code: the old features are gone once the network is trained. No tuple may\n"
        "count twice: what the prior carries over is what left the buffer."),
}

README = """# Assignment: {name}

Fill in the functions of `nlts.py` that raise NotImplementedError. Docstrings and comments are hints; all else in the
file is given and right, its imports too. Set up once (Python 3.11 or newer):

    python -m pip install -r requirements.txt

{parts}
## Good to know

`python -m pytest` also runs the tests of earlier parts; they pass from the start. A failing test prints the case that
fails: write `@example(...)` of hypothesis above the test to see it again. You are graded by the same tests on other
random cases, with our version of everything that was not yours to write. You may add helper functions and import
{imports}. Do not rename anything.
"""
PART = """## {part}: {a.goal}

Read: {a.reads}. Time: about {a.hours} hours. Write:

{functions}

{a.task}

Check your work with

    python -m pytest -m {part}

Now every test fails. You are done when it ends in `{cases} passed`.
"""
HUNT = """# Bug hunt

One place in `nlts.py` is wrong. The symptom: {symptom}.
`symptom.png` and `symptom.txt` show it. Set up once (Python 3.11 or newer): `python -m pip install -r requirements.txt`

1. Find the line, with the paper beside you. Docstrings and comments are right.
2. Say which equation or line of pseudo code it breaks, and why the symptom follows.
3. Mend it. `python symptom.py` repeats the experiment in seconds and must end in `All numbers are as expected.`
4. Write a test that fails with the bug and passes without.
"""
SYMPTOM = '''"""Repeat the experiment with nlts.py as it is now, beside the numbers that a right program gives."""
import json
from pathlib import Path

import numpy as np

import nlts


{experiment}

{table}

expected = json.loads(Path(__file__).with_name("symptom.json").read_text())
print(table(expected, {name}(nlts)))
'''


@cache
def writes_of(name):
    """The functions that an assignment leaves blank, or the one that a planted bug stands in."""
    if name in BUGS:
        right, wrong = definitions(SOURCE.read_text()), definitions(with_bug(name))
        return [f for f in right if ast.dump(right[f][0]) != ast.dump(wrong[f][0])]
    return [f for part in parts_of(name) for f in ASSIGNMENTS[part].writes]


def parts_of(name):
    return list(ASSIGNMENTS) if name == "all" else [name]


@cache
def tests_of(name):
    """The tests that belong to an assignment or a planted bug: {test: (part, number of cases)}, part by part."""
    tests, parts = [], parts_of(name)
    named = {test.partition("[")[0] for test in BUGS[name].caught_by} if name in BUGS else ()
    for node in ast.parse((HERE / "test_nlts.py").read_text()).body:
        marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
        own = [part for part in parts if f"pytest.mark.{part}" in marks or getattr(node, "name", None) in named]
        for part in own:
            cases = [len(mark.args[1].elts) for mark in node.decorator_list if "parametrize" in ast.unparse(mark)]
            tests.append((node.name, (part, prod(cases))))
    return dict(sorted(tests, key=lambda test: parts.index(test[1][0])))


# One source ---------------------------------------------------------------------------------------------------------

def definitions(source):
    """{qualified name: nodes} of the functions of a module and of the methods of its classes."""
    found = {}
    for node in ast.parse(source).body:
        inner = [(f"{node.name}.", child) for child in node.body] if isinstance(node, ast.ClassDef) else [("", node)]
        for prefix, child in inner:
            if isinstance(child, ast.FunctionDef):
                found.setdefault(prefix + child.name, []).append(child)
    return found


def span(node):
    """Where a function stands in the list of lines, decorators included."""
    return slice(min(n.lineno for n in [node, *node.decorator_list]) - 1, node.end_lineno)


def blank(source, names):
    """The source without the bodies of these functions: signature, docstring and comments stay, as hints."""
    lines, found = source.split("\n"), definitions(source)
    comments = {t.start[0]: t.string for t in tokenize.generate_tokens(io.StringIO(source).readline)
                if t.type == tokenize.COMMENT}
    for node in sorted((node for name in names for node in found[name]), key=lambda node: -node.lineno):
        has_doc, first = ast.get_docstring(node) is not None, node.body[0]
        end = first.end_lineno if has_doc else first.lineno - 1
        while not has_doc and lines[end - 1].strip()[:1] in ("", "#"):
            end -= 1
        hints = [comments[n] for n in range(end + 1, node.end_lineno + 1) if n in comments]
        indent = " " * first.col_offset
        lines[end:node.end_lineno] = [indent + line for line in [*hints, "raise NotImplementedError"]]
    return "\n".join(lines)


def overlay(student, reference, writes):
    """The student's file, with the reference's version of every function that was not to be written."""
    lines, ours, theirs = student.split("\n"), definitions(reference), definitions(student)
    if missing := [name for name in ours if name not in theirs]:
        raise ValueError(f"{missing[0]} is missing in nlts.py")
    given = [(node, name) for name in ours if name not in writes for node in theirs[name]]
    for node, name in sorted(given, key=lambda pair: -pair[0].lineno):
        lines[span(node)] = reference.split("\n")[span(ours[name][-1])]
    return "\n".join(lines)


def new_folder(out, files):
    """Write these files, {name: text}, to a folder that is not there yet or empty."""
    out = Path(out)
    if out.is_dir() and any(out.iterdir()) or out.exists() and not out.is_dir():
        raise ValueError(f"--out: {out} exists and is not an empty folder")
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (out / name).write_text(text)
    return out


def make(name, out):
    """The folder of one assignment, or of all six."""
    parts = parts_of(name)
    seen = " or ".join(list(ASSIGNMENTS)[:list(ASSIGNMENTS).index(parts[-1]) + 1])       # its own and earlier tests
    config = (HERE / "pyproject.toml").read_text().replace("--strict-markers", f"--strict-markers -m '{seen}'")
    texts = [PART.format(part=part, a=ASSIGNMENTS[part], cases=sum(n for _, n in tests_of(part).values()),
                         functions="\n".join(f"- `{f}`" for f in ASSIGNMENTS[part].writes)) for part in parts]
    readme = README.format(name=name, parts="\n".join(texts), imports=", ".join(sorted(EXTRA_IMPORTS)))
    copies = {file: (HERE / file).read_text() for file in ("test_nlts.py", "conftest.py", "requirements.txt")}
    return new_folder(out, copies | {"nlts.py": blank(SOURCE.read_text(), writes_of(name)), "README.md": readme,
                                     "pyproject.toml": f'{config}\n[tool.nlts]\nassignment = "{name}"\n'})


# Bug hunts: experiments that show symptoms. Each returns {title of a panel: [(x, y), ...]}. --------------------------

def draws_and_regret(nlts):
    rng = np.random.default_rng(0)
    E, phi = rng.normal(size=(30, 4)), np.array([1.0, -1.0, 0.5, 2.0])
    blr = nlts.BayesianLinearRegression(4)
    blr.update(E, E.sum(1) + 0.3 * rng.normal(size=30))
    values, p = [phi @ blr.sample(rng)[1] for _ in range(4000)], np.linspace(0.05, 0.95, 13)
    agent, means, regret = nlts.LinearTS(4, 3, seed=0), rng.normal(size=(3, 4)), [0.0]
    for context in rng.normal(size=(600, 4)):
        expected = means @ context
        arm = agent.act(context)
        agent.update(context, arm, expected[arm] + 0.3 * rng.normal())
        regret.append(regret[-1] + expected.max() - expected[arm])
    return {"quantile of phi'mu_tilde, by probability": list(zip(p.tolist(), np.quantile(values, p).tolist())),
            "cumulative regret of Algorithm 1, by step": [(t, float(regret[t])) for t in range(0, 601, 50)]}


def memory(nlts):
    rng, buffer, time = np.random.default_rng(0), nlts.ReplayBuffer(30), range(20, 301, 20)
    count, age = [], []
    for t in range(1, 301):
        buffer.add([t], int(rng.choice(3, p=[0.98, 0.01, 0.01])) if t > 15 else t % 3, 0.0)
        if t in time:
            count.append((t, len(buffer.rows_of(2)[0])))
            age.append((t, float(t - np.mean(buffer.rows_of(0)[0]))))
    return {"tuples of the rare arm 2 in the memory, by step": count, "mean age of the tuples of arm 0, by step": age}


def phases(nlts):
    import torch
    rng, lam = np.random.default_rng(0), 1e-3
    network = nlts.MLP(3, 2, hidden=3)
    network.features = lambda x: x @ network.input.T                     # linear: a regression on all data is known
    agent = nlts.NeuralLinearTS(network, 2, memory=40, mu0="matched", L=10 ** 9, P=0, lam=lam)
    contexts = rng.normal(size=(400, 3))
    rewards, tests = contexts.sum(1) + 0.5 * rng.normal(size=400), rng.normal(size=(50, 3))
    spread, error, plays = [], [], []
    for t, (context, reward) in enumerate(zip(contexts, rewards), 1):
        agent.update(context, t % 2, reward)
        if t % 50 == 0:                                                  # a learning phase that moves the features
            E_old = agent.buffer_features()
            network.input.data = torch.as_tensor(np.linalg.qr(rng.normal(size=(3, 3)))[0] * rng.uniform(0.5, 2, 3))
            agent.compute_priors(E_old)
            E, phi = (nlts.last_layer_activations(network, x) for x in (contexts[1:t:2], tests))
            arm, B = agent.arms[0], lam * np.eye(3) + E.T @ E
            s2 = [(phi * np.linalg.solve(precision, phi.T).T).sum(1) for precision in (arm.precision, B)]
            spread.append((t, float(np.sqrt(s2[0] / s2[1]).mean())))
            error.append((t, float(np.abs(phi @ (arm.mu_hat - np.linalg.solve(B, E.T @ rewards[1:t:2]))).max())))
            plays.append((t, 2 * (arm.a - 6) - t // 2))
    return {"standard deviation of a prediction over that from all data, by step": spread,
            "distance of a prediction from that of a regression on all data, by step": error,
            "observations counted minus observations made, by step": plays}


def frozen_prior(nlts):
    rng = np.random.default_rng(0)
    network, moved = nlts.MLP(4, 3, 6), []
    agent = nlts.NeuralLinearTS(network, 3, memory=18, mu0="last-layer", L=40, P=30, batch=8, lr=1e-2)
    for context in rng.normal(size=(90, 4)):
        arm = agent.act(context)
        agent.update(context, arm, float(abs(context[arm])))
    before = [arm.mu0.copy() for arm in agent.arms]
    for p in range(0, 60, 5):
        distance = sum(np.linalg.norm(arm.mu0 - old) for arm, old in zip(agent.arms, before))
        moved.append((p, float(distance)))
        nlts.train(agent.network, agent.buffer, 5, 8, 1e-2, rng)
    return {"distance of mu0 from its value before training, by mini-batches": moved}


def fit(nlts):
    rng, buffer, network, error = np.random.default_rng(0), nlts.ReplayBuffer(), nlts.MLP(4, 3, hidden=20), []
    for context in rng.normal(size=(300, 4)):
        arm = int(rng.integers(3))
        buffer.add(context, arm, float(np.tanh(3 * context[arm])))
    for p in range(0, 601, 50):
        weights, errors = nlts.last_layer_weights(network), []
        for arm in range(3):
            contexts, r = buffer.rows_of(arm)
            errors.extend((nlts.last_layer_activations(network, contexts) @ weights[arm] - r) ** 2)
        error.append((p, float(np.mean(errors))))
        nlts.train(network, buffer, 50, 32, 1e-2, rng)
    return {"mean squared error on the buffer, by mini-batches": error}


def table(expected, actual):
    """Both results side by side, with a mark where they differ; equal ones to the last line."""
    lines, wrong = [], 0
    for title, rows in expected.items():
        lines += ["", title, f"{'':>10}{'expected':>14}{'this program':>14}"]
        for (x, right), (_, y) in zip(rows, actual[title]):
            differs = not np.isclose(right, y, rtol=1e-6, atol=1e-6)
            wrong += differs
            lines.append(f"{x:>10.4g}{right:>14.4g}{y:>14.4g}{'   <--' * differs}")
    return "\n".join([*lines, "", f"{wrong} numbers differ." if wrong else "All numbers are as expected."])


def picture(expected, actual, path):
    """The same as one panel for each result."""
    from matplotlib.figure import Figure
    figure = Figure(figsize=(5 * len(expected), 3.6), layout="constrained")
    for axis, title in zip(figure.subplots(1, len(expected), squeeze=False)[0], expected):
        axis.plot(*zip(*expected[title]), label="expected", color="tab:blue", linewidth=3, alpha=0.5)
        axis.plot(*zip(*actual[title]), label="this program", color="tab:red", marker=".")
        axis.set_title(title.rpartition(", by ")[0], fontsize=8)
        axis.set_xlabel(title.rpartition(", by ")[2])
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=120)


@dataclass(frozen=True)
class Bug:
    """One wrong line: `right` stands once in nlts.py and becomes `wrong`; `caught_by` are tests that must fail."""
    right: str
    wrong: str
    caught_by: tuple
    where: str
    symptom: str
    experiment: callable


BUGS = {
    "squared-nu": Bug(
        "np.sqrt(nu2) * self._solve_R(z)", "nu2 * self._solve_R(z)",
        ("test_sampler_against_inverse_gamma_and_student_t", "test_known_noise_is_sampled_as_printed"),
        "Eq. (BLR)", "Thompson sampling draws rewards that are not spread as the posterior says", draws_and_regret),
    "precision-as-covariance": Bug(
        "np.sqrt(nu2) * self._solve_R(z)", "np.sqrt(nu2) * (self.F[:-1, :-1].T @ z)",
        ("test_sampler_against_inverse_gamma_and_student_t",),
        "Algorithm 1", "the more data, the more the agent explores", draws_and_regret),
    "s-for-s2": Bug(
        "match_covariance(E_new, s2, anchor, c", "match_covariance(E_new, np.sqrt(s2), anchor, c",
        ("test_priors_after_a_learning_phase_are_as_specified[both-last-layer]",
         "test_if_training_changes_no_feature_the_posterior_stays"),
        "Eq. (sigma_opt)", "after learning phases the agent is less certain than its data allow", phases),
    "double-counting": Bug(
        "np.linalg.eigh(arm.Phi - E_old.T @ E_old)", "np.linalg.eigh(arm.Phi)",
        ("test_what_is_carried_over_is_exactly_what_left_the_buffer",
         "test_if_training_changes_no_feature_the_posterior_stays"),
        "Sec. 3, 4.2", "after learning phases the agent is more certain than its data allow", phases),
    "overwritten-old-features": Bug(
        "E_new = self.buffer_features()", "E_new = E_old = self.buffer_features()",
        ("test_priors_after_a_learning_phase_are_as_specified[both-last-layer]",),
        "Algorithm 2", "what was learned under the old features does not fit the new ones", phases),
    "aliased-prior": Bug(
        'self._set_prior(_array("Phi0", Phi0, (g, g)), _array("mu0", mu0, (g,)), a, b)',
        "self._set_prior(Phi0, mu0, a, b)",
        ("test_restart_takes_prior_and_rows_and_leaves_a_and_b",
         "test_no_state_is_shared_between_arms_phases_or_agents"),
        "Algorithm 2", "the prior mean changes although no prior was computed", frozen_prior),
    "stale-mean": Bug(
        "arm.restart(Phi0, mu0, E_new[i], r)", "arm.mu_hat, _ = arm.mu_hat, arm.restart(Phi0, mu0, E_new[i], r)",
        ("test_priors_after_a_learning_phase_are_as_specified[both-last-layer]",),
        "Algorithm 2", "right after a learning phase all predictions are off", phases),
    "wrong-arm-evicted": Bug(
        "rows = np.flatnonzero(arms == (arm if arm in arms else np.bincount(arms).argmax()))",
        "rows = np.arange(self.n)", ("test_buffer_is_a_list_with_round_robin",),
        "Sec. 3, 3", "arms that are seldom played vanish from the memory", memory),
    "newest-evicted": Bug(
        "slot = rows[self.times[rows].argmin()]", "slot = rows[self.times[rows].argmax()]",
        ("test_buffer_is_a_list_with_round_robin",),
        "Sec. 3, 3", "the memory gets older and older", memory),
    "buffer-booked-as-news": Bug(
        "self.a, self.b, self.F[-1, -1] = a, b, np.sqrt(2 * b)", "self.F[-1, -1] = np.sqrt(2 * self.b)",
        ("test_restart_takes_prior_and_rows_and_leaves_a_and_b",),
        "Sec. 3, 4", "the posterior of the noise counts observations that nobody made", phases),
    "prior-mean-ignored": Bug(
        "(R @ mu0)[:, None]", "np.zeros((len(mu0), 1))",
        ("test_sequential_is_batch_is_shuffled_is_printed",),
        "Eq. (BLR)", "after learning phases the predictions miss what the forgotten tuples said", phases),
    "all-arms-trained": Bug(
        "[torch.arange(batch), torch.as_tensor(arms)]", ".mean(1)",
        ("test_train_differentiates_only_the_played_arm",),
        "Eq. (loss)", "the network does not learn to predict the rewards in the buffer", fit),
}


def with_bug(name):
    """The source of nlts.py with one planted bug."""
    source, bug = SOURCE.read_text(), BUGS[name]
    if source.count(bug.right) != 1:
        raise ValueError(f"{name}: expected its line once in nlts.py, found it {source.count(bug.right)} times")
    return source.replace(bug.right, bug.wrong)


def import_source(source, name):
    """A module made from source text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nlts.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def hunt(name, out):
    """The folder of a bug hunt. Neither the bug's name nor the right line is in it."""
    experiment, source = BUGS[name].experiment, with_bug(name)
    expected, actual = (experiment(import_source(text, "nlts_here")) for text in (SOURCE.read_text(), source))
    script = SYMPTOM.format(experiment=inspect.getsource(experiment), table=inspect.getsource(table),
                            name=experiment.__name__)
    out = new_folder(out, {"nlts.py": source, "symptom.py": script, "symptom.json": json.dumps(expected, indent=1),
                           "symptom.txt": table(expected, actual) + "\n", "README.md": HUNT.format(**vars(BUGS[name])),
                           "requirements.txt": (HERE / "requirements.txt").read_text()})
    picture(expected, actual, out / "symptom.png")
    return out


# Grading: the student's functions, our tests and everything else ours, in a process of their own ----------------------

EXTRA_IMPORTS = {"__future__", "math", "functools", "itertools", "collections", "typing"}
OUT_OF_BOUNDS = {"os", "sys", "open", "eval", "exec", "compile", "globals", "__import__", "__builtins__"}
PARSING = Lock()                                                         # a parser that fails upsets other threads


def imports(tree):
    """(what is imported, the name it gets, the line) for each import in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            source = "" if isinstance(node, ast.Import) else "." * node.level + f"{node.module or ''}."
            yield from ((source + alias.name, alias.asname or alias.name, node.lineno) for alias in node.names)


def check(source, reference, writes):
    """A ValueError if the student's own code imports or touches what no solution needs: a fence, not a prison."""
    tree, given = ast.parse(source), definitions(reference).keys() - set(writes)
    for owner in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        prefix = "" if owner is tree else f"{owner.name}."
        owner.body = [node for node in owner.body if prefix + getattr(node, "name", "") not in given]
    allowed = {name.split(".")[0] for name, _, _ in imports(ast.parse(reference))} | EXTRA_IMPORTS
    for name, _, line in imports(tree):
        if name.split(".")[0] not in allowed:
            raise ValueError(f"line {line} imports {name}; allowed are {', '.join(sorted(allowed))}")
    modules = {bound for _, bound, _ in imports(tree)}
    for node in ast.walk(tree):
        name = getattr(node, "id", getattr(node, "attr", None))
        if name in OUT_OF_BOUNDS and (isinstance(node, ast.Name) or name in ("os", "sys")):
            raise ValueError(f"line {node.lineno} uses {name}, which no solution needs")
        changed = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and ast.unparse(node)
        if changed and changed.split(".")[0] in modules:
            raise ValueError(f"line {node.lineno} changes {changed}, which is not yours")


def judge():
    """The child process: run the tests that stdin names and tell the parent, in JSON lines on what was stdout."""
    import json
    import os
    import re
    import resource
    import sys
    import traceback

    import conftest  # noqa: F401  (registers the profile "default")
    import pytest
    from hypothesis import Phase, settings
    settings.register_profile("judge", settings.get_profile("default"), phases=[Phase.generate, Phase.shrink])
    job = json.load(sys.stdin)
    out, null = os.fdopen(os.dup(1), "w", buffering=1), os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):                                             # the student's prints go nowhere
        os.dup2(null, stream)
    for limit, size in ((resource.RLIMIT_FSIZE, 2 ** 26), (resource.RLIMIT_CORE, 0)) + (
            ((resource.RLIMIT_AS, 2 ** 33),) if sys.platform == "linux" else ()):
        resource.setrlimit(limit, (size, size))

    def words(error):
        """What went wrong, for a reader who has the paper and nlts.py but not the tests in mind."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith("nlts.py")]
        last = next((f for f in reversed(frames) if f.name != "close"), None)
        if last is None:
            return f"{type(error).__name__}: {error}"[:300]
        if isinstance(error, NotImplementedError):
            return f"{last.name} is not written yet"
        notes = "\n".join(getattr(error, "__notes__", ()))
        notes = re.sub(r"#.*|state\.(same|teardown)\(\)|<state machine>", "", notes)
        case = re.search(r"(?:Failing test case|Falsifying example): (?:test_\w+\()?(.*)", notes, re.DOTALL)
        case = " ".join(case[1].split()).removesuffix(", )") if case else ""
        text = " ".join(str(error).split())
        if arrays := re.search(r"ACTUAL: (.*) DESIRED: (.*)", text):
            text = f"yours: {arrays[1]:.150}, expected: {arrays[2]:.150}"
        if last.filename.endswith("test_nlts.py"):
            text = f"this does not hold: `{last.line}` ({text:.320})"
        else:
            text = f"your {last.name} stops with {type(error).__name__} at `{last.line}` ({text:.320})"
        return f"for {case}: {text}" if case else text

    class Recorder:
        def tell(self, **record):
            out.write(json.dumps({"key": job["key"]} | record) + "\n")

        def pytest_runtest_logstart(self, nodeid):
            self.tell(at=nodeid.partition("::")[2])

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(self, item, call):
            report = yield
            if report.when == "call" or report.failed:
                says = words(call.excinfo.value) if call.excinfo else ""
                self.tell(test=item.originalname, passed=report.passed, says=says)
            return report

        def pytest_collectreport(self, report):
            if report.failed:
                errors = [line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E ")]
                self.tell(error="; ".join(errors or report.longreprtext.splitlines()[-1:])[:300])

        def pytest_internalerror(self, excinfo):
            self.tell(error=words(excinfo.value))

        def pytest_sessionfinish(self, exitstatus):
            self.tell(end=int(exitstatus))

    tests = [f"test_nlts.py::{test}" for test in job["tests"]]
    options = ["-s", "-p", "no:cacheprovider", "--hypothesis-profile=judge", f"--hypothesis-seed={job['seed']}"]
    pytest.main([*tests, *options], plugins=[Recorder()])


def run(source, tests, seed, limit):
    """Run tests on this nlts.py in a child process: {test: (passed, words)}, or a ValueError with what broke it."""
    key, late = secrets.token_hex(16), False
    files = {file: (HERE / file).read_text() for file in ("test_nlts.py", "conftest.py", "pyproject.toml")}
    files |= {"nlts.py": source, "judge.py": inspect.getsource(judge) + "\n\njudge()\n"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        for name, text in files.items():
            (Path(home) / name).write_text(text, encoding="utf-8")
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": home, "TMPDIR": home, "OMP_NUM_THREADS": "1",
                       "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}  # no CI: the seed decides, not the profile
        with subprocess.Popen([sys.executable, "judge.py"], cwd=home, env=environment, start_new_session=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            try:
                out = child.communicate(json.dumps({"key": key, "tests": list(tests), "seed": seed}).encode(), limit)[0]
            except subprocess.TimeoutExpired as error:
                out, late = error.stdout or b"", True
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)                 # whatever the student started, too
    lines = out.decode(errors="replace").split("\n")[:-1]
    records = [json.loads(line) for line in lines if line.startswith(f'{{"key": "{key}"')]
    at = next((f" in {record['at']}" for record in reversed(records) if "at" in record), " when nlts.py was imported")
    if late:
        raise ValueError(f"no end after {limit:g} seconds{at}")
    if errors := [record["error"] for record in records if "error" in record]:
        raise ValueError(f"nlts.py cannot be imported: {errors[0]}")
    if not records or records[-1].get("end") not in (0, 1):
        raise ValueError(f"the program broke off{at} (exit code {child.returncode})")
    results = {}
    for test in tests:
        cases = [record for record in records if record.get("test") == test]
        failed = [record["says"] or "it was skipped" for record in cases if not record["passed"]]
        results[test] = bool(cases) and not failed, (failed or [""])[0]
    return results


def read(path):
    """The text of a student's file."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 10 ** 6:
        raise ValueError(f"expected {path.name}, a plain file of at most 1 MB")
    return path.read_text(encoding="utf-8-sig")


def printable(text):
    return "".join(c if c.isprintable() else "?" for c in str(text))


def grade(folder, seed, limit, name=None):
    """Grade one folder: what grade.json holds. Whatever is in the folder, it ends in a result."""
    folder, result = Path(folder), {"assignment": name, "seed": seed, "points": 0, "of": 0, "reason": None, "tasks": []}
    try:
        if name is None:
            with suppress(KeyError, TypeError):
                name = tomllib.loads(read(folder / "pyproject.toml"))["tool"]["nlts"]["assignment"]
            if name not in [*ASSIGNMENTS, "all"]:
                raise ValueError("pyproject.toml does not say which assignment this is; give --name")
        with PARSING:
            tests, writes, reference = tests_of(name), writes_of(name), SOURCE.read_text()
            result |= {"assignment": name, "of": len(tests)}
            source = overlay(read(folder / "nlts.py"), reference, writes)
            check(source, reference, writes)
        for test, (passed, says) in run(source, tests, seed, limit).items():
            task = {"part": tests[test][0], "task": test.removeprefix("test_").replace("_", " ")}
            result["tasks"].append(task | {"points": int(passed), "of": 1, "says": printable(says)})
            result["points"] += passed
    except SyntaxError as error:
        result["reason"] = printable(f"nlts.py does not parse: {error.msg} in line {error.lineno}")
    except (RecursionError, MemoryError):
        result["reason"] = "nlts.py does not parse: it is nested too deeply"
    except (OSError, ValueError) as error:
        result["reason"] = printable(error)
    return result


def report(folder, result):
    """Print a result, save it as grade.json, and say whether it is full marks."""
    print(f"{folder}: {result['assignment']} {result['points']}/{result['of']} points"
          + (f": {result['reason']}" if result["reason"] else ""))
    told = set()
    for task in result["tasks"]:
        says = "" if task["points"] or task["part"] in told else f": {task['says']}"   # the first counterexample
        told |= {task["part"]} if says else set()
        print(f"    {task['part']:<10} {task['points']}/1  {task['task']}{says}")
    try:
        (Path(folder) / "grade.json").unlink(missing_ok=True)            # it may be a link to elsewhere
        (Path(folder) / "grade.json").write_text(json.dumps(result, indent=1) + "\n")
    except OSError as error:
        print(f"    grade.json was not written: {error}")
    return 0 < result["of"] == result["points"]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    for command, names in (("make", [*ASSIGNMENTS, "all"]), ("bug", list(BUGS))):
        sub = commands.add_parser(command)
        sub.add_argument("name", choices=names)
        sub.add_argument("--out", required=True, help="a folder that is not there yet or empty")
    sub = commands.add_parser("grade")
    sub.add_argument("folders", nargs="+", metavar="DIR")
    sub.add_argument("--name", choices=[*ASSIGNMENTS, "all", *BUGS], help="what the folders are; needed for bug hunts")
    sub.add_argument("--seed", type=int, help="of the random cases; drawn, and told, if not given")
    sub.add_argument("--limit", type=float, default=120, help="seconds that a submission may take (120)")
    sub.add_argument("--jobs", type=int, default=2, help="submissions graded at the same time (2)")
    o = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")                    # whatever a terminal cannot show
    if o.command is None:
        for name, a in ASSIGNMENTS.items():
            print(f"{name:<11} {a.hours} h  {a.goal}")
        print("\nBug hunts:")
        for name, bug in BUGS.items():
            print(f"{name:<25} {bug.where:<16} {bug.symptom}")
    elif o.command == "grade":
        if o.limit <= 0 or o.jobs < 1:
            parser.error("--limit, --jobs: expected a positive number")
        seed = secrets.randbits(32) if o.seed is None else o.seed
        with ThreadPoolExecutor(o.jobs) as pool:
            results = pool.map(lambda folder: grade(folder, seed, o.limit, o.name), o.folders)
            full = [report(folder, result) for folder, result in zip(o.folders, results)]
        print(f"{sum(full)} of {len(full)} with full marks (--seed {seed})")
        return int(not all(full))
    else:
        try:
            print(f"wrote {(make if o.command == 'make' else hunt)(o.name, o.out)}; its README.md says what to do")
        except (OSError, ValueError) as error:
            parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
