"""One run, files of results, processes and a cluster."""
import contextlib
import hashlib
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_programs import HERE, copy_of_program, edited, measure, start

import datasets
import nlts
import nlts_beyond
from lab import agents, kernels, keys, results, runs
from lab.options import Options
from lab.recipes import RECIPES, Recipe, with_settings

SMALL = {"L": 40, "P": 5, "batch": 8}


@pytest.fixture
def options(tmp_path):
    """What the command line gives."""
    return Options("table", steps=20, runs=2, jobs=1, out=tmp_path)


def some_runs(options, *names, dataset="statlog", **more):
    """Runs of these algorithms with few mini-batches."""
    return [task for name in names for task in results.make_runs(
        options, dataset, name, with_settings(RECIPES[name], **SMALL), **more)]


class Inline(Executor):
    """Plays in this process, and notes what it played; some algorithms fail, some never end."""

    def __init__(self):
        self.played, self.futures, self.fails, self.hangs = [], [], "", ""

    def submit(self, function, task, key):
        self.played.append((task.algorithm, task.run))
        self.futures.append(Future())
        if task.algorithm == self.fails:
            self.futures[-1].set_exception(ArithmeticError("not positive definite"))
        elif task.algorithm != self.hangs:
            self.futures[-1].set_result(function(pickle.loads(pickle.dumps(task)), key))
        return self.futures[-1]


@pytest.fixture
def pool(monkeypatch):
    pool = Inline()
    monkeypatch.setattr(results, "executor", lambda options: contextlib.nullcontext(pool))
    return pool


# One run ------------------------------------------------------------------------------------------

def test_seeds_are_those_of_the_run_only():
    """All algorithms meet the same problem; LinearTS gets a constant feature besides."""
    task = runs.Task("table", "statlog", "carried", RECIPES["carried"], 60)
    assert runs.run_seed(replace(task, run=3)) == int(
        hashlib.sha256(b"table/statlog/3/0").hexdigest()[:8], 16)
    changes = [{}, {"run": 1}, {"seed": 1}, {"experiment": "x"}, {"dataset": "wheel-0.5"}]
    assert len({runs.run_seed(replace(task, **change)) for change in changes}) == len(changes)
    problems = [recipe.problem(replace(task, recipe=recipe)) for recipe in RECIPES.values()]
    for problem in problems[1:]:
        np.testing.assert_array_equal(problems[0].contexts[:, :-1], problem.contexts)
        np.testing.assert_array_equal(problems[0].rewards, problem.rewards)
    assert (problems[0].contexts[:, -1] == 1).all()


@pytest.mark.parametrize("name", ["linear", "carried", "greedy", "ε-greedy"])
def test_a_run_is_the_plain_loop_and_exploration_is_counted_by_hand(name):
    recipe = RECIPES.get(name, Recipe(nlts.EpsilonGreedy, arguments={"epsilon": 0.3}))
    recipe = with_settings(recipe, **SMALL)
    task = runs.Task("x", "statlog", name, recipe, 120, observer=runs.Regret)
    result = runs.run_task(task)
    problem = recipe.problem(task)
    agent = runs.make_agent(recipe, problem, runs.run_seed(task))
    explored, earned = [], []
    for t, (context, rewards) in enumerate(zip(problem.contexts, problem.rewards, strict=True)):
        arm = agent.act(context)
        if "greedy" in name:
            values = agent.network(torch.as_tensor(context)[None])[0].detach().numpy()
        else:
            values = [agent.phi(context) @ posterior.mu_hat for posterior in agent.arms]
        if t >= problem.n_arms * agent.config.initial_pulls:
            explored.append(arm != int(np.argmax(values)))
        agent.update(context, arm, rewards[arm])
        earned.append(rewards[arm])
    np.testing.assert_allclose(result["regret"], problem.optimal - earned)
    assert result["explored"] == pytest.approx(np.mean(explored), abs=1e-6)
    assert (result["explored"] == 0) == (name == "greedy")
    assert result["reward"] == sum(earned) and result["seconds"] > 0
    assert result["best_arm"] == problem.rewards.sum(0).max()        # the most frequent class
    assert result["uniform"] == pytest.approx(120 / 7, abs=1e-6)


def test_optimal_is_expected_not_realized_and_values_are_those_of_the_first_contexts():
    recipe = with_settings(RECIPES["carried"], **SMALL)
    task = runs.Task("x", "wheel-0.5", "carried", recipe, 700, observer=runs.Values)
    result, problem = runs.run_task(task), datasets.load("wheel-0.5", 700, runs.run_seed(task))
    assert result["optimal"] == pytest.approx(problem.optimal.sum(), abs=1e-5)
    assert result["optimal"] < problem.rewards.max(1).sum() - 10
    np.testing.assert_allclose(result["contexts"], problem.contexts[:600], atol=5e-4)
    np.testing.assert_allclose(result["rewards"], problem.rewards[:600], atol=5e-4)
    assert np.shape(result["expected"]) == (600, 5)


def test_recipes_make_agents_with_their_prior_and_their_memory():
    problem = datasets.load("statlog", 50)
    made = {name: runs.make_agent(recipe, problem, 0) for name, recipe in RECIPES.items()}
    priors = {"both-priors": nlts.likelihood_matching, "mu-prior": nlts.mean_prior,
              "no-prior": nlts.no_prior, "carried": nlts_beyond.carried_prior}
    for name, prior in priors.items():
        assert made[name].prior is prior
    full = {name for name, agent in made.items() if name != "linear" and not agent.buffer.capacity}
    assert full == {"neural-linear", "greedy-full", "perfect-prior"}
    assert made["printed"].prior.solver == {"solver": "SCS", "max_iters": 2500}
    assert made["greedy"].buffer.capacity == 700 and made["greedy"].epsilon == 0
    assert {agent.config for agent in made.values()} == {nlts.Config()}


def test_the_perfect_prior_trains_on_the_buffer_and_knows_all_data():
    problem, trained_on = datasets.load("statlog", 80), []

    def train(network, buffer, config, rng):
        trained_on.append(buffer.arrays())

    network, buffer = nlts.MLP(problem.dim, problem.n_arms), nlts.ReplayBuffer(14)
    agent = agents.perfect_prior(network, problem.n_arms, 14, train=train, **SMALL)
    for context, rewards in zip(problem.contexts, problem.rewards, strict=True):
        arm = agent.act(context)
        agent.update(context, arm, rewards[arm])
        buffer.add(context, arm, rewards[arm])
    assert len(trained_on) == 2 and sum(arm.n for arm in agent.arms) == 80
    for part, expected in zip(trained_on[-1], buffer.arrays(), strict=True):
        np.testing.assert_array_equal(part, expected)
    contexts, played, _ = agent.buffer.arrays()
    E = nlts.last_layer_activations(agent.network, contexts[played == 0])
    np.testing.assert_allclose(agent.arms[0].precision, 0.25 * np.eye(50) + E.T @ E, atol=1e-9)


# Files of results ---------------------------------------------------------------------------------

def test_finished_runs_are_not_played_again(options, pool, capsys):
    tasks = some_runs(options, "no-prior", "linear", variant="x")
    first = results.execute(options, tasks)
    assert pool.played == [("no-prior", 0), ("linear", 0), ("no-prior", 1), ("linear", 1)]
    assert [(result["algorithm"], result["run"]) for result in first] == pool.played
    expected = {"dataset": "statlog", "algorithm": "no-prior", "variant": "x", "run": 0,
                "steps": 20, "key": keys.key(tasks[0]), "task": keys.task_id(tasks[0])}
    assert expected.items() <= first[0].items()
    assert f"numpy {np.__version__}" in first[0]["played_on"]
    assert results.execute(options, tasks) == first
    assert "4 runs on file, 0 to play" in capsys.readouterr().err
    more = replace(options, runs=3)
    results.execute(more, some_runs(more, "linear", variant="x"))
    assert pool.played[4:] == [("linear", 2)]
    fresh = results.execute(replace(options, fresh=True), tasks[2:])
    assert pool.played[5:] == [("linear", 0), ("linear", 1)] and len(fresh) == 2
    assert len(results.read(options.out / "table.jsonl")) == 5       # other tasks stay


def test_an_unfinished_line_is_dropped_and_played_again(options, pool):
    tasks, path = some_runs(options, "linear"), options.out / "table.jsonl"
    first = results.execute(options, tasks)
    path.write_bytes(path.read_bytes()[:-20])
    again = results.execute(options, tasks)
    assert [result["reward"] for result in again] == [result["reward"] for result in first]
    assert len(pool.played) == 3 and len(results.read(path)) == 2


@pytest.mark.parametrize("damage", [b'{"key": "a', b"\xff\xfe", b"5"])
def test_a_damaged_line_is_named(tmp_path, damage):
    path = tmp_path / "table.jsonl"
    results.append(path, {"key": "a", "task": "x"})
    path.write_bytes(path.read_bytes() + damage + b"\n")
    with pytest.raises(SystemExit, match="table.jsonl, line 2: damaged; delete the line"):
        results.read(path)


def test_missing_data_is_skipped_unless_its_results_are_on_file(options, pool, no_cache, capsys):
    here, missing = (some_runs(options, "linear", dataset=d)[0] for d in ("statlog", "covertype"))
    [found] = results.execute(options, [here, missing])
    assert found["dataset"] == "statlog" and "fetch covertype" in capsys.readouterr().err
    made_up = found | {"dataset": "covertype", "key": keys.key(missing)}
    results.append(options.out / "table.jsonl", made_up)
    assert made_up in results.execute(options, [here, missing])
    assert "skipped" not in capsys.readouterr().err
    with pytest.raises(SystemExit, match="nothing to report"):
        results.execute(replace(options, command="equal"), [missing])


def test_only_runs_that_every_algorithm_finished_are_kept():
    played = {"xa": [0, 1, 2], "xb": [0, 2], "xc": [0], "ya": [0]}   # data set, algorithm: runs
    found = [{"dataset": name[0], "algorithm": name[1], "run": run}
             for name, finished in played.items() for run in finished]
    kept = [(result["dataset"] + result["algorithm"], result["run"])
            for result in results.complete_runs(found)]
    assert kept == [("xa", 0), ("xa", 2), ("xb", 0), ("xb", 2), ("xc", 0), ("ya", 0)]


def test_steps_and_runs_are_those_that_there_are(options):
    options = replace(options, steps=10 ** 6, runs=5)
    assert some_runs(options, "linear", dataset="financial")[0].steps == 3713
    assert some_runs(options, "linear", dataset="mushroom")[0].steps == 10 ** 6
    assert [len(some_runs(options, "linear", most=most)) for most in (3, 9)] == [3, 5]


def test_bad_data_ends_the_command_with_file_and_line(options, tmp_path, monkeypatch):
    """A worker finds it, and has to send it."""
    monkeypatch.setenv("NLTS_DATA", str(tmp_path))
    (tmp_path / "covtype.data").write_text("1,2,x\n")
    with pytest.raises(SystemExit, match="covtype.data, line 1: "):
        results.execute(options, some_runs(options, "linear", dataset="covertype"))


def test_a_run_that_fails_stops_the_command_and_loses_nothing(options, pool, monkeypatch):
    pool.fails, pool.hangs = "no-prior", "both-priors"
    monkeypatch.setattr(results, "as_completed", lambda futures: futures)
    with pytest.raises(ArithmeticError):
        results.execute(options, some_runs(options, "linear", "no-prior", "both-priors"))
    assert len(results.read(options.out / "table.jsonl")) == 1 and pool.futures[2].cancelled()


# Taking over --------------------------------------------------------------------------------------

def of_older_code(path, **changes):
    """Give all results of a file keys of their own, and change the second one."""
    found = sorted(results.read(path), key=lambda result: (result["algorithm"], result["run"]))
    found[1] |= changes
    path.write_text("".join(results.as_line(result | {"key": f"old{k}"})
                            for k, result in enumerate(found)), encoding="utf-8")


def test_results_of_older_code_are_taken_over_if_a_sample_agrees(options, pool, capsys):
    tasks, path = some_runs(options, "linear", "no-prior"), options.out / "table.jsonl"
    before = results.execute(options, tasks)
    of_older_code(path)
    older = {result["task"]: result["key"] for result in results.read(path)}
    assert results.execute(replace(options, verify=True), tasks) == [
        result | {"taken_over": older[result["task"]]} for result in before]
    printed = capsys.readouterr().out
    assert "statlog, no-prior, run 1: the same" in printed and printed.count("the same") == 4
    results.execute(options, tasks)
    assert len(pool.played) == 8 and len(results.read(path)) == 4    # all, as there are few


def test_nothing_is_taken_over_if_one_run_differs(options, pool, capsys):
    tasks, path = some_runs(options, "linear"), options.out / "table.jsonl"
    results.execute(options, tasks)
    of_older_code(path, explored=2)
    before = path.read_bytes()
    with pytest.raises(SystemExit, match="1 of 2 runs differ, .* stays as it is"):
        results.execute(replace(options, verify=True), tasks)
    assert path.read_bytes() == before
    assert "statlog, linear, run 1: differs in explored" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="has no runs"):
        results.execute(replace(options, verify=True, command="equal"), tasks)


def test_what_cannot_be_played_here_is_not_taken_over(options, pool, no_cache):
    here, missing = (some_runs(options, "linear", dataset=d)[0] for d in ("statlog", "covertype"))
    path = options.out / "table.jsonl"
    [found] = results.execute(options, [here])
    made_up = found | {"dataset": "covertype", "key": "x", "task": keys.task_id(missing)}
    results.append(path, made_up)
    of_older_code(path)
    results.execute(replace(options, verify=True), [here, missing])
    assert [result["key"] for result in results.read(path)] == [keys.key(here), "old1"]


def test_a_sample_is_another_one_each_time_and_has_all_data_sets_and_algorithms(options):
    options = replace(options, runs=50)
    tasks = {f"{d}/{name}/{run}": task for d in ("statlog", "adult", "mushroom")
             for name in RECIPES for run, task in enumerate(some_runs(options, name, dataset=d))}
    samples = [results.sample_of(tasks) for _ in range(2)]
    assert set(samples[0]) != set(samples[1])
    for sample in samples:
        assert 30 <= len(sample) <= 43 and sample.items() <= tasks.items()
        assert {task.algorithm for task in sample.values()} == set(RECIPES)
        assert {task.dataset for task in sample.values()} == {"statlog", "adult", "mushroom"}
    assert len(results.sample_of(dict(list(tasks.items())[:50]))) == 20


# Processes and a cluster --------------------------------------------------------------------------

@pytest.mark.slow
def test_two_commands_at_once_of_which_one_is_killed_lose_nothing(tmp_path):
    path = tmp_path / "table.jsonl"
    arguments = ["table", "--datasets", "statlog", "--algorithms", "linear,no-prior", "--runs",
                 "40", "--steps", "150", "--jobs", "1", "--out", str(tmp_path)]
    killed, other = start(HERE, *arguments), start(HERE, *arguments)
    deadline = time.monotonic() + 120
    while not (path.exists() and path.read_bytes().count(b"\n") >= 5):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()                              # its worker ends, too, and closes the pipes
    words = other.communicate()[1]
    assert other.returncode == 0, words
    found = sorted((result["algorithm"], result["run"]) for result in results.read(path))
    assert found == [(name, run) for name in ("linear", "no-prior") for run in range(40)]


CLUSTER = """
from distributed import LocalCluster
with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
    print(cluster.scheduler_address, flush=True)
    input()
"""


@pytest.fixture
def cluster(tmp_path):
    """The address of a Dask scheduler with a worker, which are started elsewhere."""
    pytest.importorskip("distributed", reason="pip install distributed")
    with subprocess.Popen([sys.executable, "-c", CLUSTER], cwd=tmp_path, text=True,
                          env=os.environ | kernels.PINNED, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        yield process.stdout.readline().strip()
        process.communicate("the end\n")


@pytest.mark.slow
def test_a_cluster_plays_the_same_and_refuses_once_the_code_has_changed(cluster, tmp_path):
    program = copy_of_program(tmp_path)
    arguments = ["table", "--datasets", "adult", "--algorithms", "linear,no-prior", "--runs", "2",
                 "--steps", "410", "--jobs", "2"]
    here, _ = measure(program, *arguments, "--out", str(tmp_path / "here"))
    there, _ = measure(program, *arguments, "--dask", cluster, "--out", str(tmp_path / "there"))
    assert len(here) == 4
    for result, other in zip(here, there, strict=True):
        assert result | {"seconds": 0} == other | {"seconds": 0}
    edited(program / "nlts.py", "lam: float = 0.25", "lam: float = 0.26")
    again, words = measure(program, *arguments, "--dask", cluster, "--out", str(tmp_path / "there"))
    assert again == [] and "this worker has loaded other code than the command" in words
