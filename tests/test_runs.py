"""What a result depends on and what not, results files, processes, and a cluster."""
import argparse
import contextlib
import hashlib
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from pathlib import Path

import numpy as np
import pytest
import torch

import datasets
import nlts
from lab import agents, fast, references, runs

HERE = Path(__file__).resolve().parent.parent
SMALL = {"L": 40, "P": 5, "batch": 8}


def options(tmp_path, **changes):
    """What the command line gives."""
    given = {"command": "table", "runs": None, "steps": None, "jobs": 1, "seed": 0, "quick": False,
             "out": tmp_path, "data_dir": None, "dask": None, "csv": None, "datasets": [],
             "algorithms": list(agents.ALGORITHMS)}
    return argparse.Namespace(**given | changes)


def small_task(o, algorithm="both-priors", steps=90, **hyper):
    return runs.make_task(o, "test", "statlog", algorithm, steps, memory=5, **SMALL | hyper)


def without_seconds(lines):
    lines = [{k: v for k, v in line.items() if k != "seconds"} for line in lines]
    return sorted(lines, key=lambda line: (line["algorithm"], line["run"]))


class Inline(Executor):
    """Plays in this process, and keeps what it played."""

    def __init__(self):
        self.played = []

    def submit(self, function, task):
        self.played.append((task["algorithm"], task["run"]))
        future = Future()
        future.set_result(function(task))
        return future


@pytest.fixture
def inline(monkeypatch):
    pool = Inline()
    monkeypatch.setattr(runs, "executor", lambda o: contextlib.nullcontext(pool))
    return pool.played


# Training -----------------------------------------------------------------------------------------

def some_buffer(n=30, dim=4, n_arms=3, seed=0):
    rng, buffer = np.random.default_rng(seed), nlts.ReplayBuffer()
    for _ in range(n):
        context = rng.normal(size=dim)
        buffer.add(context, int(rng.integers(n_arms)), context[0] + rng.normal())
    return buffer


def difference_from_plain_training(train, P=60):
    """The largest difference of a parameter from nlts.train's, and whether the states agree."""
    config = nlts.Config(P=P, batch=8, lr=1e-2)
    plain, other = nlts.MLP(4, 3, 7, seed=1), nlts.MLP(4, 3, 7, seed=1)
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    nlts.train(plain, some_buffer(), config, one)
    train(other, some_buffer(), config, two)
    difference = max((p - q).abs().max().item() for p, q in
                     zip(plain.parameters(), other.parameters(), strict=True))
    return difference, one.bit_generator.state == two.bit_generator.state


@pytest.mark.parametrize("P", [0, 1, 60])
def test_fast_training_is_the_plain_loop(P):
    """Explicit gradients and Adam against torch's autograd and Adam."""
    difference, same_state = difference_from_plain_training(fast.train, P)
    assert difference < 1e-9 and same_state


@pytest.mark.parametrize("right, wrong", [
    ("D[each, played] = 2 / B * (output - rewards[rows])",
     "D[:] = 2 / B * (output - rewards[rows])[:, None]"),            # every arm differentiated
    ("dphi *= phi > 0", "pass"),                                     # no ReLU in the gradient
    ("beta2 ** step", "beta2")])                                     # no correction of the bias
def test_planted_bugs_in_the_fast_training_are_caught(right, wrong):
    source = inspect.getsource(fast)
    assert source.count(right) == 1
    scope = {}
    exec(source.replace(right, wrong), scope)
    assert difference_from_plain_training(scope["train"])[0] > 1e-4


def test_the_fast_text_network_is_the_plain_one():
    plain, quick = nlts.TextCNN(40, 3, seed=1), fast.FastTextCNN(40, 3, seed=1)
    x = torch.from_numpy(np.random.default_rng(0).integers(40, size=(7, 60)))
    x[:3, 20:] = 0                                    # padding: many places with the same maximum
    for network in (plain, quick):
        (network(x) ** 2).sum().backward()
    torch.testing.assert_close(quick.features(x), plain.features(x), rtol=1e-4, atol=1e-5)
    for name, p in plain.named_parameters():
        torch.testing.assert_close(dict(quick.named_parameters())[name].grad, p.grad,
                                   rtol=1e-3, atol=1e-4)
    quick.embedding.weight.data = quick.embedding.weight.data.roll(1, 0)    # words one place off
    assert not torch.allclose(quick.features(x), plain.features(x), rtol=1e-2)


# The perfect prior --------------------------------------------------------------------------------

def test_the_perfect_prior_with_a_large_buffer_is_full_memory():
    problem = datasets.load("statlog", 130)
    networks = [nlts.MLP(problem.dim, problem.n_arms, seed=1) for _ in range(2)]
    full = nlts.NeuralLinearTS(networks[0], problem.n_arms, seed=2, **SMALL)
    perfect = references.perfect_prior(networks[1], problem.n_arms, 1000, seed=2, **SMALL)
    np.testing.assert_array_equal(runs.play(problem, full), runs.play(problem, perfect))
    np.testing.assert_array_equal(full.arms[0].precision, perfect.arms[0].precision)


def test_the_perfect_prior_trains_on_the_buffer_and_knows_all_data():
    problem, seen = datasets.load("statlog", 120), []

    def train(network, buffer, config, rng):
        seen.append(list(buffer.tuples))
        nlts.train(network, buffer, config, rng)

    agent = references.perfect_prior(nlts.MLP(problem.dim, problem.n_arms), problem.n_arms, 14,
                                     train=train, seed=2, **SMALL)
    runs.play(problem, agent)
    buffer = nlts.ReplayBuffer(14)
    for tuple_ in agent.buffer.tuples:
        buffer.add(*tuple_)
    assert [len(tuples) for tuples in seen] == [14, 14, 14] and len(agent.buffer.tuples) == 120
    for (x, arm, reward), (y, arm2, reward2) in zip(seen[-1], buffer.tuples, strict=True):
        assert np.array_equal(x, y) and (arm, reward) == (arm2, reward2)
    E = nlts.last_layer_activations(agent.network, agent.buffer.rows_of(0)[0])
    np.testing.assert_allclose(agent.arms[0].precision, 0.25 * np.eye(50) + E.T @ E, atol=1e-9)


# Runs ---------------------------------------------------------------------------------------------

def test_seeds_are_those_of_the_run_only(tmp_path):
    assert runs.run_seed("table", "statlog", 3, 0) == int(
        hashlib.sha256(b"table/statlog/3/0").hexdigest()[:8], 16)
    seeds = {runs.run_seed(e, d, r, s) for e in "ab" for d in "cd" for r in (0, 1) for s in (0, 1)}
    assert len(seeds) == 16
    o = options(tmp_path)
    problems = [runs.make_run(small_task(o, name) | {"run": 1})[0] for name in agents.ALGORITHMS]
    for problem in problems[1:]:
        np.testing.assert_array_equal(problems[0].contexts[:, :-1], problem.contexts)
        np.testing.assert_array_equal(problems[0].rewards, problem.rewards)


def test_a_run_is_the_plain_loop_and_is_timed(tmp_path):
    task = small_task(options(tmp_path), "carried", steps=130) | {"run": 0, "trace": True}
    problem, agent = runs.make_run(task)
    earned = []
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        earned.append(rewards[arm])
        agent.update(context, arm, rewards[arm])
    line = runs.run_task(task)
    assert line["reward"] == sum(earned)
    np.testing.assert_allclose(line["regret"], problem.optimal - earned)
    assert line["seconds"] > 0
    assert torch.get_num_threads() == 1


def test_every_recipe_makes_the_agent_it_names(tmp_path):
    problem = datasets.load("statlog", 50)
    made = {name: agents.make_agent(recipe, problem, 5, {}, 0)
            for name, recipe in agents.RECIPES.items()}
    assert isinstance(made["linear"], nlts.LinearTS)
    assert isinstance(made["ε=0.3"], nlts.EpsilonGreedy) and made["ε=0.3"].epsilon == 0.3
    limited = {"both-priors": "likelihood_matching", "mu-prior": "mean_prior",
               "no-prior": "no_prior", "carried": "carried_prior"}
    for name, prior in limited.items():
        assert made[name].prior.__name__ == prior and made[name].buffer.capacity == 35
    assert made["neural-linear"].buffer.capacity is None
    labels = [recipe.label for recipe in agents.RECIPES.values()]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("name, first", [("wheel 0.3", "wheel"), ("drifting statlog", "statlog")])
def test_problems_by_name(tmp_path, name, first):
    task = small_task(options(tmp_path), steps=60) | {"dataset": name}
    problem = runs.make_problem(task, 3)
    assert len(problem) == 60 and problem.name.startswith(first)


def test_a_drifting_problem_has_the_rows_of_the_plain_one(tmp_path):
    task = small_task(options(tmp_path), steps=60)
    plain, drifting = (runs.make_problem(task | {"dataset": d}, 3)
                       for d in ("statlog", "drifting statlog"))
    assert not np.array_equal(plain.contexts, drifting.contexts)
    np.testing.assert_allclose(np.sort(plain.contexts, 0), np.sort(drifting.contexts, 0))


# Hashes -------------------------------------------------------------------------------------------

def test_the_hash_names_what_a_result_depends_on(tmp_path):
    o = options(tmp_path)
    tasks = [small_task(o), small_task(o, steps=80), small_task(o, L=30), small_task(o, "no-prior"),
             small_task(options(tmp_path, seed=1)), small_task(o, b0=0.6),
             runs.make_task(o, "test", "statlog", "both-priors", 90, memory=6, **SMALL),
             runs.make_task(o, "other", "statlog", "both-priors", 90, memory=5, **SMALL)]
    assert len({task["hash"] for task in tasks}) == len(tasks)
    elsewhere = options(tmp_path, data_dir=tmp_path)
    assert small_task(elsewhere)["hash"] == tasks[0]["hash"]
    assert json.loads(json.dumps(tasks[0])) == tasks[0]


def test_the_hash_of_a_studys_own_prior_is_that_of_its_source(tmp_path, monkeypatch):
    """A label may stay where its meaning changes."""
    monkeypatch.syspath_prepend(tmp_path)
    hashes = []
    for power in (1, 2):
        source = ("from lab.agents import limited\n"
                  "def prior(left, E_old, E_new, weights, lam):\n"
                  f"    return [(old.precision * {power}, w) for old, w in zip(left, weights)]\n"
                  "RECIPES = {'mine': limited('mine', prior)}\n")
        (tmp_path / f"study{power}.py").write_text(source)
        task = runs.make_task(options(tmp_path), "test", "statlog", "mine", 90, memory=5,
                              module=f"study{power}", **SMALL)
        named_alike = task | {"recipe": ["study", "mine"]}
        monkeypatch.setitem(sys.modules, "study", sys.modules[f"study{power}"])
        monkeypatch.setattr(sys.modules["study"].prior, "__module__", "study")
        hashes.append(runs.config_hash(named_alike))
        assert runs.run_task(task | {"run": 0})["algorithm"] == "mine"
    assert hashes[0] != hashes[1]


# Results files ------------------------------------------------------------------------------------

def test_finished_runs_are_not_played_again(tmp_path, inline):
    o, task = options(tmp_path), small_task(options(tmp_path))
    first = runs.execute(o, "table", [task], 2)
    assert inline == [("both-priors", 0), ("both-priors", 1)]
    assert runs.execute(o, "table", [task], 2) == first and len(inline) == 2
    runs.execute(o, "table", [task], 3)
    assert inline[2:] == [("both-priors", 2)]


def test_a_half_written_line_is_dropped_and_played_again(tmp_path, inline):
    o, path = options(tmp_path), tmp_path / "table.jsonl"
    task = small_task(o)
    first = runs.execute(o, "table", [task], 2)
    lost = runs.read_lines(path)[-1]["run"]
    path.write_bytes(path.read_bytes()[:-20])
    again = runs.execute(o, "table", [task], 2)
    assert without_seconds(again) == without_seconds(first)
    assert inline[2:] == [("both-priors", lost)] and len(runs.read_lines(path)) == 2


def test_a_changed_configuration_never_mixes_with_old_lines(tmp_path, inline):
    o = options(tmp_path)
    runs.execute(o, "table", [small_task(o)], 1)
    new = small_task(o, lr=1e-2)
    lines = runs.execute(o, "table", [new], 1)
    assert [line["config"] for line in lines] == [new["hash"]] and len(inline) == 2


def test_whole_runs_come_first_and_lines_are_in_the_order_of_tasks(tmp_path, inline):
    o = options(tmp_path)
    tasks = [small_task(o, name, steps=20) for name in ("no-prior", "linear")]
    lines = runs.execute(o, "table", tasks, 2)
    assert inline == [("no-prior", 0), ("linear", 0), ("no-prior", 1), ("linear", 1)]
    assert [(line["algorithm"], line["run"]) for line in lines] == [
        ("no-prior", 0), ("no-prior", 1), ("linear", 0), ("linear", 1)]


def test_a_run_that_fails_stops_the_command_and_loses_nothing(tmp_path, monkeypatch):
    o, futures = options(tmp_path), []

    class Failing(Inline):
        def submit(self, function, task):
            future = Future()
            futures.append(future)
            if task["algorithm"] == "linear":
                future.set_result(function(task))
            if task["algorithm"] == "no-prior":
                future.set_exception(ArithmeticError("not positive definite"))
            return future                             # any other never ends

    monkeypatch.setattr(runs, "executor", lambda o: contextlib.nullcontext(Failing()))
    monkeypatch.setattr(runs, "as_completed", lambda futures: futures)
    tasks = [small_task(o, name) for name in ("linear", "no-prior", "both-priors")]
    with pytest.raises(ArithmeticError):
        runs.execute(o, "table", tasks, 1)
    assert len(runs.read_lines(tmp_path / "table.jsonl")) == 1 and futures[2].cancelled()


def test_kill_9_loses_only_the_runs_in_flight_and_workers_play_as_this_process_does(tmp_path):
    arguments = ["table", "--datasets", "statlog", "--algorithms", "linear", "both-priors",
                 "--runs", "40", "--steps", "420", "--jobs", "1", "--out", str(tmp_path)]
    process = subprocess.Popen([sys.executable, str(HERE / "experiments.py"), *arguments],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    path, deadline = tmp_path / "table.jsonl", time.monotonic() + 60
    while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while time.monotonic() < deadline + 20:           # its worker must not outlive it
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a worker outlived its killed parent")
    before = runs.read_lines(path)
    assert 0 < len(before) < 80
    n = before[-1]["run"] + 2
    o = options(tmp_path, jobs=2)
    tasks = [runs.make_task(o, "table", "statlog", name, 420) for name in ("linear", "both-priors")]
    lines = runs.execute(o, "table", tasks, n)
    assert runs.read_lines(path)[:len(before)] == before
    here = [runs.run_task(task | {"run": run}) for task in tasks for run in range(n)]
    assert without_seconds(lines) == without_seconds(here)


# A cluster ----------------------------------------------------------------------------------------

@pytest.fixture
def cluster(tmp_path):
    """A Dask scheduler and two workers of one process each, on the loopback interface."""
    distributed = pytest.importorskip("distributed", reason="pip install distributed")
    environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10"}
    processes, file = [], tmp_path / "scheduler.json"

    def start(name, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--host", "127.0.0.1",
                   "--scheduler-file", str(file), *arguments]
        processes.append(subprocess.Popen(command, env=environment, cwd=tmp_path,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    try:
        start("scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0")
        for k in range(2):
            start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard",
                  "--local-directory", str(tmp_path / f"worker{k}"))
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        with distributed.Client(address, timeout="20s") as client:
            client.wait_for_workers(2, timeout=60)
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_cluster_gives_the_same_results_even_if_a_worker_dies(cluster, tmp_path, monkeypatch):
    address, processes = cluster
    o = options(tmp_path / "there", dask=address)
    tasks = [small_task(o, name, P=2) for name in ("linear", "both-priors")]
    original = runs.progress

    def killing(items, total, what):
        for k, item in enumerate(original(items, total, what)):
            if k == 2:
                processes[2].kill()                   # in the middle of its runs
            yield item

    monkeypatch.setattr(runs, "progress", killing)
    there = runs.execute(o, "table", tasks, 6)
    here = [runs.run_task(task | {"run": run}) for task in tasks for run in range(6)]
    assert without_seconds(there) == without_seconds(here)


def test_linear_gets_an_intercept(tmp_path):
    task = runs.make_task(options(tmp_path), "table", "statlog", "linear", 30) | {"run": 0}
    problem, agent = runs.make_run(task)
    assert problem.contexts.shape == (30, 10) and agent.dim == 10
    assert (problem.contexts[:, -1] == 1).all()
