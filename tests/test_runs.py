"""What a result depends on and what not, results files, processes, and a cluster."""
import contextlib
import hashlib
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import datasets
import nlts
import nlts_beyond
from lab import fast, recipes, references, runs
from lab.options import Options

HERE = Path(__file__).resolve().parent.parent
SMALL = {"L": 40, "P": 5, "batch": 8}


def options(tmp_path, **changes):
    """What the command line gives."""
    return Options("table", **{"steps": 90, "runs": 2, "jobs": 1, "out": tmp_path} | changes)


def small_task(o, algorithm="both-priors", hyper=SMALL, **more):
    return runs.make_task(o, "statlog", algorithm, memory=5, hyper=hyper, **more)


def without_seconds(lines):
    lines = [{k: v for k, v in line.items() if k not in ("seconds", "digest")} for line in lines]
    return sorted(lines, key=lambda line: (line["algorithm"], line["run"]))


class Inline(Executor):
    """Plays in this process, and keeps what it played."""

    def __init__(self):
        self.played = []

    def submit(self, function, task):
        self.played.append((task.algorithm, task.run))
        future = Future()
        future.set_result(function(pickle.loads(pickle.dumps(task))))
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
    o = options(tmp_path)
    task = runs.make_task(o, "statlog", "carried")
    assert runs.run_seed(replace(task, run=3)) == int(
        hashlib.sha256(b"table/statlog/3/0").hexdigest()[:8], 16)
    changes = [{}, {"run": 1}, {"seed": 1}, {"experiment": "x"}, {"dataset": "adult"},
               {"delta": 0.5}, {"delta": 0.3}]
    assert len({runs.run_seed(replace(task, **change)) for change in changes}) == len(changes)
    problems = [runs.make_run(replace(small_task(o, name), run=1))[0]
                for name in recipes.ALGORITHMS]
    for problem in problems[1:]:
        np.testing.assert_array_equal(problems[0].contexts[:, :-1], problem.contexts)
        np.testing.assert_array_equal(problems[0].rewards, problem.rewards)


def test_a_run_is_the_plain_loop_and_is_timed(tmp_path):
    task = small_task(options(tmp_path, steps=130), "carried", record="regret")
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


def test_a_line_has_the_fields_that_apply(tmp_path):
    o = options(tmp_path, steps=50)
    line = runs.run_task(runs.make_task(o, "statlog", "carried"))
    assert {"dataset": "statlog", "algorithm": "carried", "run": 0, "steps": 50, "arms": 7,
            "dim": 9, "optimal": 50}.items() <= line.items()
    assert not {"delta", "variant", "hyper", "drift"} & set(line)
    wheel = runs.run_task(runs.make_task(o, "wheel", "linear", variant="x", delta=0.3,
                                         hyper={"b0": 0.6}))
    assert (wheel["delta"], wheel["variant"], wheel["hyper"]) == (0.3, "x", {"b0": 0.6})
    assert wheel["dim"] == 2                          # without the intercept
    assert json.loads(runs.as_text(wheel)) == wheel


def test_of_the_problem_a_line_tells_what_any_arm_and_one_arm_earn(tmp_path):
    o = options(tmp_path, steps=300)
    line = runs.run_task(runs.make_task(o, "statlog", "linear"))
    problem = runs.make_problem(runs.make_task(o, "statlog", "linear"))
    counts = problem.rewards.sum(0)                   # how often each class is right
    assert line["best_arm"] == counts.max() and line["optimal"] == 300
    assert line["uniform"] == pytest.approx(300 / 7)


@pytest.mark.parametrize("name", ["linear", "carried", "greedy", "recommended", "ε-greedy"])
def test_exploration_is_counted_by_hand_and_changes_no_choice(tmp_path, name):
    recipe = recipes.RECIPES.get(name, recipes.epsilon_greedy(0.3))
    task = small_task(options(tmp_path, steps=120), name, recipe=recipe)
    line = runs.run_task(task)
    problem, agent = runs.make_run(task)
    explored, earned = [], 0.0
    for t, (context, rewards) in enumerate(zip(problem.contexts, problem.rewards, strict=True)):
        arm = agent.act(context)
        if name == "linear":
            values = [context @ one.mu_hat for one in agent.arms]
        elif name in ("greedy", "ε-greedy"):
            values = agent.network(torch.as_tensor(context)[None])[0].detach().numpy()
        else:
            values = [agent.phi(context) @ one.mu_hat for one in agent.arms]
        if t >= problem.n_arms * agent.config.initial_pulls:
            explored.append(arm != int(np.argmax(values)))
        agent.update(context, arm, rewards[arm])
        earned += rewards[arm]
    assert line["reward"] == earned                   # nothing was drawn in between
    assert line["explored"] == pytest.approx(np.mean(explored), abs=1e-6)
    assert (line["explored"] == 0) == (name == "greedy")


def test_an_agent_without_arms_is_played_but_its_exploration_is_not_counted():
    problem = datasets.load("statlog", 20)
    watch = runs.Exploration()
    runs.play(problem, references.Textbook(nlts.MLP(9, 7), 7), watch)
    assert watch.share() is None


def test_every_recipe_makes_the_agent_it_names():
    problem = datasets.load("statlog", 50)
    made = {name: recipes.make_agent(recipe, problem, 5, recipe.hyper, 0)
            for name, recipe in recipes.RECIPES.items()}
    assert isinstance(made["linear"], nlts.LinearTS)
    priors = {"both-priors": nlts.likelihood_matching, "mu-prior": nlts.mean_prior,
              "no-prior": nlts.no_prior, "carried": nlts_beyond.carried_prior,
              "recommended": nlts_beyond.carried_prior}
    for name, prior in priors.items():
        own = made[name].prior
        assert (own.func if isinstance(own, partial) else own) is prior
        assert made[name].buffer.capacity == 35
    assert made["both-priors"].prior.keywords == {"match": fast.match_covariance}
    assert made["recommended"].noise is nlts_beyond.pooled_noise
    assert made["carried"].noise is nlts.inverse_gamma_noise
    assert made["greedy"].epsilon == 0 and made["greedy"].buffer.capacity == 35
    assert made["greedy"].config == made["recommended"].config != made["carried"].config
    assert made["neural-linear"].buffer.capacity is None
    labels = [recipe.label for recipe in recipes.RECIPES.values()]
    assert len(set(labels)) == len(labels)


def test_linear_gets_an_intercept(tmp_path):
    problem, agent = runs.make_run(runs.make_task(options(tmp_path, steps=30), "statlog", "linear"))
    assert problem.contexts.shape == (30, 10) and agent.dim == 10
    assert (problem.contexts[:, -1] == 1).all()


def test_a_drifting_problem_has_the_rows_of_the_plain_one(tmp_path):
    task = small_task(options(tmp_path, steps=60))
    plain, drifting = (runs.make_problem(replace(task, drift=drift)) for drift in (False, True))
    assert not np.array_equal(plain.contexts, drifting.contexts)
    np.testing.assert_allclose(np.sort(plain.contexts, 0), np.sort(drifting.contexts, 0))


def test_steps_are_those_that_there_are(tmp_path):
    o = options(tmp_path, steps=10 ** 6)
    assert runs.steps_of(o, "financial") == 3713 and runs.steps_of(o, "mushroom") == 10 ** 6


# Settings -----------------------------------------------------------------------------------------

def test_config_names_what_a_result_depends_on(tmp_path):
    o = options(tmp_path)
    carried = recipes.RECIPES["carried"]
    tasks = [small_task(o), small_task(options(tmp_path, steps=80)), small_task(o, "no-prior"),
             small_task(o, hyper=SMALL | {"L": 30}), small_task(options(tmp_path, seed=1)),
             small_task(o, hyper=SMALL | {"b0": 0.6}), small_task(o, experiment="other"),
             small_task(o, drift=True), small_task(o, variant="x"), small_task(o, recipe=carried),
             runs.make_task(o, "statlog", "both-priors", memory=6, hyper=SMALL),
             small_task(o, recipe=replace(carried, network=nlts.MLP)),
             small_task(o, recipe=replace(carried, arguments={
                 "prior": partial(nlts.likelihood_matching, match=nlts.match_covariance)}))]
    assert len({task.config for task in tasks}) == len(tasks)
    elsewhere = options(tmp_path, data_dir=tmp_path, jobs=2)
    assert small_task(elsewhere).config == tasks[0].config


# Results files ------------------------------------------------------------------------------------

def test_finished_runs_are_not_played_again(tmp_path, inline, capsys):
    o, task = options(tmp_path), small_task(options(tmp_path))
    first = runs.execute(o, [task])
    assert inline == [("both-priors", 0), ("both-priors", 1)]
    assert runs.execute(o, [task]) == first and len(inline) == 2
    assert "2 runs read, 0 to play" in capsys.readouterr().err
    runs.execute(replace(o, runs=3), [task])
    assert inline[2:] == [("both-priors", 2)]


def test_a_half_written_line_is_dropped_and_played_again(tmp_path, inline):
    o, path = options(tmp_path), tmp_path / "table.jsonl"
    task = small_task(o)
    first = runs.execute(o, [task])
    lost = runs.read_lines(path)[-1]["run"]
    path.write_bytes(path.read_bytes()[:-20])
    again = runs.execute(o, [task])
    assert without_seconds(again) == without_seconds(first)
    assert inline[2:] == [("both-priors", lost)] and len(runs.read_lines(path)) == 2


def test_another_configuration_never_mixes_with_old_lines(tmp_path, inline):
    o = options(tmp_path, runs=1)
    runs.execute(o, [small_task(o)])
    new = small_task(o, hyper=SMALL | {"lr": 1e-2})
    lines = runs.execute(o, [new])
    assert [line["config"] for line in lines] == [new.config] and len(inline) == 2


def of_another_program(path, part="nlts.py"):
    """Change the digests in a file, as an edit of that part of the program would."""
    lines = runs.read_lines(path)
    for line in lines:
        line["digest"][part] = "another"
    path.write_text("".join(map(runs.as_text, lines)), encoding="utf-8")


def test_runs_of_another_program_are_set_aside_and_played_again(tmp_path, inline, capsys):
    o, path = options(tmp_path), tmp_path / "table.jsonl"
    task = small_task(o)
    first = runs.execute(o, [task])
    of_another_program(path)
    again = runs.execute(o, [task])
    assert ("0 runs read, 2 to play; 2 set aside, of another program: nlts.py has changed since"
            in capsys.readouterr().err)
    assert len(inline) == 4 and without_seconds(again) == without_seconds(first)
    assert len(runs.read_lines(path)) == 2            # the new ones have taken their place
    assert all(line["digest"]["nlts.py"] != "another" for line in runs.read_lines(path))


def test_fresh_plays_everything_again_and_replaces_only_that(tmp_path, inline):
    o, path = options(tmp_path), tmp_path / "table.jsonl"
    tasks = [small_task(o, name) for name in ("linear", "no-prior")]
    runs.execute(o, tasks)
    other = [line for line in runs.read_lines(path) if line["algorithm"] == "no-prior"]
    runs.execute(replace(o, fresh=True), tasks[:1])
    assert inline[4:] == [("linear", 0), ("linear", 1)]
    lines = runs.read_lines(path)
    assert len(lines) == 4 and all(line in lines for line in other)


def test_verify_takes_a_file_over_if_all_agrees(tmp_path, inline, capsys):
    o, path = options(tmp_path), tmp_path / "table.jsonl"
    tasks = [small_task(o, name) for name in ("linear", "no-prior")]
    first = runs.execute(o, tasks)
    of_another_program(path, "lab/fast.py")
    assert runs.execute(replace(o, verify=True), tasks) == first
    assert len(inline) == 8 and "4 runs played once more agree" in capsys.readouterr().err
    assert runs.execute(o, tasks) == first and len(inline) == 8


@pytest.mark.parametrize("field, change", [("reward", 1), ("explored", 1e-6), ("regret", [0] * 90)])
def test_verify_leaves_a_file_alone_if_something_differs(tmp_path, inline, field, change):
    o, path = options(tmp_path), tmp_path / "table.jsonl"
    task = small_task(o, record="regret")
    runs.execute(o, [task])
    lines = runs.read_lines(path)
    lines[1][field] = change if field == "regret" else lines[1][field] + change
    path.write_text("".join(map(runs.as_text, lines)), encoding="utf-8")
    of_another_program(path)
    before = path.read_bytes()
    where = f"statlog, both-priors, run {lines[1]['run']}: {field}"
    with pytest.raises(SystemExit, match=f"1 of 2 runs differ(.|\\n)*{where}"):
        runs.execute(replace(o, verify=True), [task])
    assert path.read_bytes() == before
    with pytest.raises(SystemExit, match="no runs"):
        runs.execute(replace(o, verify=True, out=tmp_path / "empty"), [task])


def test_what_is_verified_covers_every_algorithm_and_problem(tmp_path):
    o = options(tmp_path)
    tasks = [replace(runs.make_task(o, d, name, variant=variant), run=run)
             for d in ("statlog", "adult", "mushroom") for name in recipes.ALGORITHMS
             for variant in ("", "x") for run in range(4)]
    sample = runs.sample_of(tasks)
    assert {(task.algorithm, task.variant) for task in sample} == {
        (name, variant) for name in recipes.ALGORITHMS for variant in ("", "x")}
    assert {task.dataset for task in sample} == {"statlog", "adult", "mushroom"}
    assert len(runs.sample_of(tasks[:2])) == 2 and len(runs.sample_of(tasks[:60])) >= 12
    assert len(runs.sample_of([replace(tasks[0], run=run) for run in range(50)])) == 12


def test_whole_runs_come_first_and_lines_are_in_the_order_of_tasks(tmp_path, inline):
    o = options(tmp_path, steps=20)
    tasks = [small_task(o, name) for name in ("no-prior", "linear")]
    lines = runs.execute(o, tasks)
    assert inline == [("no-prior", 0), ("linear", 0), ("no-prior", 1), ("linear", 1)]
    assert [(line["algorithm"], line["run"]) for line in lines] == [
        ("no-prior", 0), ("no-prior", 1), ("linear", 0), ("linear", 1)]


def test_data_that_is_not_here_is_told_from_the_file(tmp_path, inline, no_cache, capsys):
    """Lines of Covertype, which is not on this machine, are read; missing ones are skipped."""
    o = options(tmp_path / "out", steps=20)
    tasks = [runs.make_task(o, d, "linear") for d in ("statlog", "covertype")]
    lines = runs.execute(o, tasks)
    assert {line["dataset"] for line in lines} == {"statlog"}
    assert "fetch covertype" in capsys.readouterr().err
    made_up = lines[0] | {"dataset": "covertype", "config": tasks[1].config}
    with open(o.out / "table.jsonl", "a", encoding="utf-8") as file:
        file.write(runs.as_text(made_up))
    assert made_up in runs.execute(o, tasks)
    with pytest.raises(SystemExit, match="nothing to tell"):
        runs.execute(replace(o, out=tmp_path / "else"), tasks[1:])


def test_of_a_file_that_is_not_complete_only_pairs_are_told():
    played = {"xa": 3, "xb": 2, "ya": 1}              # problem and algorithm: runs
    lines = [{"dataset": name[0], "config": name, "run": run, "steps": 5}
             for name, count in played.items() for run in range(count)]
    told = [(line["config"], line["run"]) for line in runs.in_pairs(lines)]
    assert told == [("xa", 0), ("xa", 1), ("xb", 0), ("xb", 1), ("ya", 0)]


def test_a_run_that_fails_stops_the_command_and_loses_nothing(tmp_path, monkeypatch):
    o, futures = options(tmp_path, runs=1), []

    class Failing(Inline):
        def submit(self, function, task):
            future = Future()
            futures.append(future)
            if task.algorithm == "linear":
                future.set_result(function(task))
            if task.algorithm == "no-prior":
                future.set_exception(ArithmeticError("not positive definite"))
            return future                             # any other never ends

    monkeypatch.setattr(runs, "executor", lambda o: contextlib.nullcontext(Failing()))
    monkeypatch.setattr(runs, "as_completed", lambda futures: futures)
    tasks = [small_task(o, name) for name in ("linear", "no-prior", "both-priors")]
    with pytest.raises(ArithmeticError):
        runs.execute(o, tasks)
    assert len(runs.read_lines(tmp_path / "table.jsonl")) == 1 and futures[2].cancelled()


def test_what_is_measured_once_is_read_again(tmp_path):
    o, measured = options(tmp_path), []

    def measure(o):                                   # its digest is that of runs.progress
        measured.append(o)
        return {"x": (1, 2)}

    measure.__module__, measure.__qualname__ = "lab.runs", "progress"
    first = runs.read_once(o, measure)
    assert first["x"] == [1, 2] and len(measured) == 1
    (tmp_path / "table.json").write_text(json.dumps(first), encoding="utf-8")
    assert runs.read_once(o, measure) == first and len(measured) == 1
    for other in (replace(o, seed=1), replace(o, fresh=True)):
        runs.read_once(other, measure)
    measure.__qualname__ = "run_seed"                 # another program
    runs.read_once(o, measure)
    assert len(measured) == 4


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
    o = options(tmp_path, jobs=2, steps=420, runs=n)
    tasks = [runs.make_task(o, "statlog", name) for name in ("linear", "both-priors")]
    lines = runs.execute(o, tasks)
    assert runs.read_lines(path)[:len(before)] == before
    here = [runs.run_task(replace(task, run=run)) for task in tasks for run in range(n)]
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
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
        with distributed.Client(address, timeout="20s") as client:
            client.wait_for_workers(2, timeout=60)
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_cluster_gives_the_same_results_even_if_a_worker_dies(cluster, tmp_path, monkeypatch):
    address, processes = cluster
    o = options(tmp_path / "there", dask=address, runs=6)
    tasks = [small_task(o, name, hyper=SMALL | {"P": 2}) for name in ("linear", "both-priors")]
    original = runs.progress

    def killing(items, total, what):
        for k, item in enumerate(original(items, total, what)):
            if k == 2:
                processes[2].kill()                   # in the middle of its runs
            yield item

    monkeypatch.setattr(runs, "progress", killing)
    there = runs.execute(o, tasks)
    here = [runs.run_task(replace(task, run=run)) for task in tasks for run in range(6)]
    assert without_seconds(there) == without_seconds(here)
