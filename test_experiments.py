"""Tests of experiments.py: what a result depends on and what it does not, results files, and runs on a cluster."""
import argparse
import contextlib
import copy
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import datasets
import experiments
import nlts

HERE = Path(__file__).resolve().parent


def options(tmp_path, **changes):
    return argparse.Namespace(**{"command": "table", "runs": None, "steps": None, "jobs": 1, "seed": 0, "quick": False,
                                 "out": tmp_path, "data_dir": None, "dask": None, "csv": None, "datasets": None,
                                 "algorithms": list(experiments.ALGORITHMS)} | changes)


def command(*arguments, **more):
    """python experiments.py ... as a user runs it."""
    return subprocess.run([sys.executable, str(HERE / "experiments.py"), *map(str, arguments)], capture_output=True,
                          text=True, timeout=120, check=False, **more)


def small_task(o, algorithm="both-priors", runs=(0,), steps=90, **hyper):
    hyper = {} if algorithm == "linear" else {"L": 40, "P": 5, "batch": 8} | hyper
    return experiments.make_task(o, "test", "statlog", algorithm, steps, memory=5, **hyper) | {"runs": list(runs)}


def without_seconds(lines):
    return sorted(({k: v for k, v in line.items() if k != "seconds"} for line in lines),
                  key=lambda line: (line["algorithm"], line["run"]))


# Runs ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("size", [1, 3])
def test_training_together_is_the_plain_loop(size):
    """The explicit gradients against nlts.train (torch autograd and Adam), from the same random state."""
    agents = []
    for k in range(size):
        agent = nlts.NeuralLinearTS(nlts.MLP(4, 3, 7, seed=k), 3, memory=30, L=10 ** 6, P=60, batch=8, lr=1e-2, seed=k)
        rng = np.random.default_rng(k)
        for _ in range(20 + k):
            context = rng.normal(size=4)
            agent.update(context, agent.act(context), context[0])
        agents.append(agent)
    plain = copy.deepcopy(agents)
    experiments.train_together(agents)
    for one, two in zip(plain, agents):
        nlts.train(one.network, one.buffer, 60, 8, 1e-2, one.rng)
        for p, q in zip(one.network.parameters(), two.network.parameters()):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-8, atol=1e-9)
        assert one.rng.bit_generator.state == two.rng.bit_generator.state


def test_a_planted_bug_in_the_fast_training_is_caught(monkeypatch):
    """Differentiating every arm instead of the one that was played must not pass for the plain loop."""
    source = (HERE / "experiments.py").read_text()
    right = "D[every, each, arms] = 2 / B * (output - rewards)"
    assert source.count(right) == 1
    function = source[source.index("def train_together"):source.index("class FastTextCNN")].replace(
        right, "D[:] = (2 / B * (output - rewards))[:, :, None]")
    scope = {"np": np}
    exec(function, scope)
    monkeypatch.setattr(experiments, "train_together", scope["train_together"])
    with pytest.raises(AssertionError):
        test_training_together_is_the_plain_loop(3)


def test_a_run_does_not_depend_on_its_company(tmp_path):
    o = options(tmp_path)
    together = experiments.run_task(small_task(o, runs=(0, 1, 2)))
    alone = [experiments.run_task(small_task(o, runs=(k,)))[0] for k in (2, 0, 1)]
    assert without_seconds(together) == without_seconds(alone)
    assert len({line["seed"] for line in together}) == 3


def test_all_algorithms_see_the_same_rows_in_the_same_order(tmp_path):
    o, seen = options(tmp_path), []
    for algorithm in experiments.ALGORITHMS:
        task = small_task(o, algorithm)
        seed = experiments.run_seed("test", "statlog", 0, 0)
        seen.append(experiments.make_problem(task, seed).contexts)
        assert experiments.run_task(task)[0]["seed"] == seed
    assert all(np.array_equal(seen[0], other) for other in seen[1:])
    seeds = {experiments.run_seed(e, d, r, s) for e in "ab" for d in "cd" for r in (0, 1) for s in (0, 1)}
    assert len(seeds) == 16


def test_lockstep_learns_what_an_agent_alone_learns(tmp_path):
    """play() with the learning phase taken apart gives the rewards of the plain loop act, update."""
    task = small_task(options(tmp_path), steps=130)
    seed = experiments.run_seed("test", "statlog", 0, 0)
    problem = experiments.make_problem(task, seed)
    agent, earned = experiments.make_agent(task, problem, seed), []
    for context, rewards in zip(problem.contexts, problem.rewards):
        arm = agent.act(context)
        earned.append(rewards[arm])
        agent.update(context, arm, rewards[arm])
    rewards, _ = experiments.play([problem], [experiments.make_agent(task, problem, seed)])
    assert np.mean(rewards[0] == earned) > 0.98                           # rounding may tip a choice, rarely


def test_linear_has_an_intercept_and_limited_memory_its_limit(tmp_path):
    o, problem = options(tmp_path), datasets.load("statlog", 50)
    assert experiments.make_agent(small_task(o, "linear"), problem, 0).dim == 10
    agent = experiments.make_agent(small_task(o, "mu-prior"), problem, 0)
    assert (agent.buffer.capacity, agent.priors) == (35, "mean")
    assert experiments.make_agent(small_task(o, "neural-linear"), problem, 0).buffer.capacity is None


# Results files ------------------------------------------------------------------------------------------------------

def test_results_are_the_same_for_any_number_of_jobs(tmp_path):
    for jobs in (1, 2):
        done = command("table", "--datasets", "statlog", "--algorithms", "linear", "both-priors", "--runs", 3, "--steps", 420,
                       "--jobs", jobs, "--out", tmp_path / str(jobs))
        assert done.returncode == 0, done.stderr
    one, two = (without_seconds(experiments.read_lines(tmp_path / str(jobs) / "table.jsonl")) for jobs in (1, 2))
    assert one == two and len(one) == 6
    assert {"dataset", "algorithm", "run", "seed", "steps", "reward", "optimal", "config"} <= set(one[0])


@pytest.fixture
def instant(monkeypatch):
    """execute() in this process, so that a test can count and steer what is played."""
    from concurrent.futures import Executor, Future

    class Inline(Executor):
        def submit(self, function, *arguments):
            future = Future()
            future.set_result(function(*arguments))
            return future

    played = []

    def run(task):
        played.extend((task["algorithm"], run) for run in task["runs"])
        return original(task)

    original = experiments.run_task
    monkeypatch.setattr(experiments, "run_task", run)
    monkeypatch.setattr(experiments, "ProcessPoolExecutor", lambda *a, **k: Inline())
    return played


def test_finished_runs_are_not_played_again(tmp_path, instant):
    o = options(tmp_path)
    task = {k: v for k, v in small_task(o).items() if k != "runs"}
    first = experiments.execute(o, "table", [task], 2)
    assert instant == [("both-priors", 0), ("both-priors", 1)]
    assert experiments.execute(o, "table", [task], 2) == first and len(instant) == 2
    experiments.execute(o, "table", [task], 3)
    assert instant[2:] == [("both-priors", 2)]


def test_a_run_that_fails_stops_the_command_and_loses_nothing(tmp_path, monkeypatch):
    """An error in one run is raised at once: what was finished is kept, what waits is not played in vain."""
    o, calls = options(tmp_path), []

    class Future:
        def __init__(self, task):
            self.task, self.cancelled = task, False

        def result(self):
            if self.task["algorithm"] == "no-prior":
                raise ArithmeticError("not positive definite")
            return [{"dataset": "statlog", "algorithm": "linear", "run": 0, "config": self.task["hash"]}]

        def cancel(self):
            self.cancelled = True

    class Pool:
        def submit(self, *arguments):
            calls.append(Future(arguments[-1]))
            return calls[-1]

    monkeypatch.setattr(experiments, "executor", lambda o: contextlib.nullcontext(Pool()))
    monkeypatch.setattr(experiments, "as_completed", lambda futures: futures)
    tasks = [{k: v for k, v in small_task(o, name).items() if k != "runs"} for name in ("linear", "no-prior", "both-priors")]
    with pytest.raises(ArithmeticError):
        experiments.execute(o, "table", tasks, 1)
    assert len(experiments.read_lines(tmp_path / "table.jsonl")) == 1 and calls[2].cancelled


def test_a_half_written_line_is_dropped_and_played_again(tmp_path, instant):
    o, path = options(tmp_path), tmp_path / "table.jsonl"
    task = {k: v for k, v in small_task(o).items() if k != "runs"}
    first = experiments.execute(o, "table", [task], 2)
    path.write_bytes(path.read_bytes()[:-20])
    again = experiments.execute(o, "table", [task], 2)
    assert without_seconds(again) == without_seconds(first) and instant[2:] == [("both-priors", 1)]
    assert len(experiments.read_lines(path)) == 2


def test_a_changed_configuration_never_mixes_with_old_lines(tmp_path, instant):
    o = options(tmp_path)
    hashes = {small_task(o)["hash"], small_task(o, steps=80)["hash"], small_task(o, L=30)["hash"],
              small_task(options(tmp_path, seed=1))["hash"], small_task(o, "no-prior")["hash"]}
    assert len(hashes) == 5
    old = {k: v for k, v in small_task(o).items() if k != "runs"}
    new = {k: v for k, v in small_task(o, lr=1e-2).items() if k != "runs"}
    experiments.execute(o, "table", [old], 1)
    lines = experiments.execute(o, "table", [new], 1)
    assert [line["config"] for line in lines] == [new["hash"]] and len(instant) == 2


def test_kill_9_loses_only_the_runs_in_flight(tmp_path):
    arguments = ["table", "--datasets", "statlog", "--algorithms", "linear", "--runs", "40", "--steps", "600", "--jobs", "1",
                 "--out", str(tmp_path)]
    process = subprocess.Popen([sys.executable, str(HERE / "experiments.py"), *arguments], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    path, deadline = tmp_path / "table.jsonl", time.monotonic() + 60
    while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while time.monotonic() < deadline + 20:                               # its worker must not outlive it
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a worker outlived its killed parent")
    before = experiments.read_lines(path)
    assert 0 < len(before) < 40
    done = command(*arguments)
    assert done.returncode == 0 and f"{len(before)} runs are already" in done.stderr
    lines = experiments.read_lines(path)
    assert lines[:len(before)] == before and sorted(line["run"] for line in lines) == list(range(40))


# Commands -----------------------------------------------------------------------------------------------------------

def test_forgetting_writes_figure_and_numbers(tmp_path, instant, capsys):
    o = options(tmp_path, command="forgetting", runs=2, steps=850, algorithms=["linear", "no-prior"])
    experiments.forgetting(o)
    out = capsys.readouterr().out
    assert "regret" in out and "forgetting.json" in out and "forgetting.png" in out
    data = json.loads((tmp_path / "forgetting.json").read_text())
    assert data["config"]["steps"] == 850 and set(data["algorithms"]) == {"linear", "no-prior"}
    for result in data["algorithms"].values():
        regret = np.array(result["regret"])
        assert regret.shape == (2, 850) and set(np.unique(regret)) <= {0, 1}
        np.testing.assert_array_equal(850 - regret.sum(1), result["reward"])
    assert (tmp_path / "forgetting.png").read_bytes()[:4] == b"\x89PNG"


def test_table_is_generated_from_the_lines():
    lines = [{"dataset": "statlog", "algorithm": name, "run": run, "dim": 9, "arms": 7, "steps": 5000, "reward": reward + run}
             for name, reward in (("linear", 100), ("both-priors", 300), ("no-prior", 200)) for run in (0, 2)]
    text = experiments.table_text(lines, ["linear", "both-priors", "no-prior"])
    assert "| Statlog | 9 | 7 | 5000 | 2 | 101 ± 1 | **301 ± 1** | 201 ± 1 |" in text
    assert "*4483 ± 353* | *4825 ± 305* | *4623 ± 276*" in text


def test_the_papers_numbers_are_those_of_the_paper():
    path = HERE.parent / "shared" / "paper.tex"
    if not path.exists():
        pytest.skip("the paper's text is not beside the repository")
    text = path.read_text()
    for name, row in experiments.PAPER_TABLE.items():
        line = next(part for part in text.split("\\rule{0pt}{2.6ex}") if part.strip().lower().startswith(name))
        numbers = re.findall(r"([\d.]+)\s*\$\\pm\$\s*([\d.]+)", line)
        assert [(float(m), float(s)) for m, s in numbers] == [(float(m), float(s)) for m, s in row], name


def test_missing_data_is_skipped_with_a_way_to_get_it(tmp_path, instant, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NLTS_DATA", raising=False)
    experiments.table(options(tmp_path, datasets=["covertype", "statlog"], algorithms=["linear"], runs=1, steps=100))
    out, err = capsys.readouterr()
    assert "skipped" in err and "fetch covertype" in err and "Statlog" in out and "Covertype" not in out
    with pytest.raises(SystemExit, match="kaggle"):
        experiments.main(["amazon", "--out", str(tmp_path)])


def test_own_data(tmp_path, instant, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    rows = [",".join([*map(str, x), "red" if x[0] > 0 else "blue"]) for x in X]
    (tmp_path / "mine.csv").write_text("a,b,c,color\n" + "\n".join(rows) + "\n")
    experiments.table(options(tmp_path, csv=tmp_path / "mine.csv", runs=1, steps=200, algorithms=["linear", "no-prior"]))
    assert "| Mine | 3 | 2 | 200 | 1 |" in capsys.readouterr().out
    assert np.mean([line["reward"] for line in experiments.read_lines(tmp_path / "table.jsonl")]) > 140


def test_the_list_of_commands_and_bad_options(capsys):
    with pytest.raises(SystemExit) as stop:
        experiments.main([])
    listing = capsys.readouterr().out
    assert stop.value.code == 0 and all(name in listing for name in experiments.COMMANDS)
    for arguments, word in ((["forgetting", "--runs", "0"], "--runs"), (["nonsense"], "COMMAND"),
                            (["table", "--jobs", "-1"], "--jobs")):
        with pytest.raises(SystemExit) as stop:
            experiments.main(arguments)
        assert stop.value.code == 2 and word in capsys.readouterr().err


def test_wheel_draws_its_figure(tmp_path, instant):
    experiments.wheel(options(tmp_path, command="wheel", runs=1, steps=220, algorithms=["linear", "both-priors"]))
    data = json.loads((tmp_path / "wheel.json").read_text())
    assert set(data["reward"]) == {"0.5", "0.3", "0.1"} and (tmp_path / "wheel.png").stat().st_size > 10_000


def test_the_readme_holds_what_the_results_files_say():
    """`python experiments.py readme` would change nothing; a number typed into a block would be seen."""
    text = (HERE / "README.md").read_text()
    assert experiments.readme() == text
    blocks = re.findall(r"<!-- (figures/[\w./-]+) -->", text)
    assert blocks and all((HERE / block).exists() for block in blocks)


def test_the_readme_filler_replaces_what_is_between_its_marks(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.txt").write_text("1 2\n")
    (tmp_path / "README.md").write_text("x\n<!-- figures/a.txt -->\ntyped by hand\n<!-- end -->\ny\n")
    assert experiments.readme(tmp_path / "README.md") == "x\n<!-- figures/a.txt -->\n```\n1 2\n```\n<!-- end -->\ny\n"


def test_the_example_in_the_readme_runs(tmp_path, monkeypatch):
    code = re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(code.replace("steps=2000", "steps=420"), scope)
    assert scope["reward"] > 200 and (tmp_path / "agent.npz").exists()


def test_anchors_measures_the_information_that_left(tmp_path):
    """What the features' movement says keeps more than the old covariance does, and the module is left as it was."""
    task = {"dataset": "statlog", "run": 0, "steps": 1250, "seed": 0, "data_dir": None}
    before = nlts.match_covariance
    exact = experiments.anchor_run(task | {"anchor": "the old covariance"})
    assert 0 < exact["error"] < 3 and nlts.match_covariance is before
    default = experiments.anchor_run(task | {"anchor": next(iter(experiments.ANCHORS))})
    assert default["error"] < 0.5 * exact["error"]


# Appendix C, Sec. 3.1 and the SDP ---------------------------------------------------------------------------------

@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_growth_finds_the_power_and_its_error(power):
    rng, x = np.random.default_rng(0), np.geomspace(1, 1000, 200)
    assert experiments.growth(x, 3 * x ** power) == pytest.approx((power, 0), abs=1e-9)
    p, e = experiments.growth(x, 3 * x ** power * np.exp(0.1 * rng.normal(size=200)))
    assert abs(p - power) < 4 * e and e == pytest.approx(0.1 / np.sqrt(200) / np.log(x).std(), rel=0.3)
    kink = np.where(x < 30, 30.0, x) ** power
    assert experiments.growth(x, kink, least=30)[0] == pytest.approx(power)
    assert experiments.growth(x, kink, most=29)[0] == pytest.approx(0, abs=1e-9)


def test_representation_changes_are_exact_only_with_enough_tuples():
    exact = experiments.representation_changes(np.random.default_rng(0), 8, 16, 5, 30)
    assert np.shape(exact) == (5, 2) and 0 < np.max(exact) < 1e-11


def test_the_sanity_check_can_fail(monkeypatch):
    """Planted bug: the posterior that is carried over still contains the buffer, which then counts twice."""
    monkeypatch.setattr(nlts, "forgotten", lambda arm, E, r: (arm.precision, arm.mu_hat))
    assert np.min(experiments.representation_changes(np.random.default_rng(0), 8, 16, 5, 30)) > 1e-3


def test_prior_errors_vanish_where_the_assumptions_hold_and_grow_where_they_do_not():
    errors = lambda n, eps: np.mean([experiments.prior_errors(np.random.default_rng(k), 8, n, eps) for k in range(5)], 0)
    exact, few, bent, strongly = errors(16, 0.0), errors(4, 0.0), errors(40, 0.1), errors(40, 1.0)
    assert exact.shape == (3, 2) and exact[:2].max() < 1e-10 < 1e-3 < exact[2].min()
    assert few.min() > 1e-3 and (few[1] < few[2]).all()
    assert (1e-4 < bent[:2]).all() and (bent[:2] < strongly[:2]).all()


def test_bytes_and_seconds_of_both_memories():
    rows = experiments.growth_in_T(0, 1000, 100, 1)
    bytes_per_tuple = 8 * (9 + 3)                                        # context, arm, reward, time
    assert rows.shape == (10, 2, 4) and (rows[..., :3] > 0).all()
    np.testing.assert_array_equal(rows[:, 0, 3], bytes_per_tuple * np.arange(100, 1001, 100))
    np.testing.assert_array_equal(rows[:, 1, 3], bytes_per_tuple * np.arange(100, 1001, 100).clip(max=700))


def test_priors_are_timed_with_the_buffer_full_and_as_many_evicted(monkeypatch):
    seen, compute = [], nlts.NeuralLinearTS.compute_priors

    def record(agent, E_old):
        plays = [2 * (arm.a - agent.config.a0) for arm in agent.arms]
        seen.append(([len(E) for E in E_old], plays, E_old[0].shape[1]))
        compute(agent, E_old)

    monkeypatch.setattr(nlts.NeuralLinearTS, "compute_priors", record)
    assert experiments.priors_seconds(0, [(2, 5, 4), (3, 7, 6)], repeats=2).shape == (2, 2)
    assert seen == [([5, 5], [10, 10], 4), ([7, 7, 7], [14, 14, 14], 6)] * 2


def test_capture_records_what_the_agent_solves_and_puts_the_solver_back(tmp_path, monkeypatch):
    solver = nlts.match_covariance
    monkeypatch.setattr(nlts.Config, "L", 30)                            # only the number of steps loaded
    monkeypatch.setattr(nlts.NeuralLinearTS.__init__, "__defaults__", (None, "both", "last-layer", 30, 5, 0))
    found = experiments.capture("statlog", options(tmp_path), (2, 3))
    assert nlts.match_covariance is solver
    assert {call[1] for call in found} == {2, 3} and [call[2] for call in found] == [*range(7)] * 2
    assert [sum(len(call[3][1]) for call in found if call[1] == phase) for phase in (2, 3)] == [60, 90]
    assert all(call[3][0].shape == (len(call[3][1]), 50) and call[3][3:] == (0.1, 10.0) for call in found)
    monkeypatch.setattr(nlts.NeuralLinearTS, "act", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        experiments.capture("statlog", options(tmp_path), (2,))
    assert nlts.match_covariance is solver


@pytest.mark.parametrize("n, g", [(6, 4), (30, 4), (20, 8)])
def test_all_solvers_of_the_stated_problem_reach_one_objective(n, g):
    rows = experiments.time_solvers(experiments.synthetic(np.random.default_rng(n), n, g), experiments.SOLVERS, 1)
    ours = rows["ours"][1]
    assert rows["Clarabel"][1] == pytest.approx(ours, rel=1e-5)
    assert rows["SCS"][1] > (1 - 1e-6) * ours < rows["as printed"][1]    # SCS stops at an absolute tolerance
    assert all(row[0] > 0 for row in rows.values())


def test_objective_written_out_for_one_feature():
    """psi = 2, X = 1/2: misfit 2^2/2 - 1 = 1, ridge 0.1 * 2^4 * (1/2 - 1)^2 = 0.4."""
    E, s2, anchor, S = np.array([[1.0]]), np.array([1.0]), np.array([[4.0]]), np.array([[2.0]])
    assert experiments.stated_objective(E, s2, anchor, 0.1, 10.0, S) == pytest.approx((1.4, 1.0))


def test_the_printed_problem_is_matched_exactly_where_that_is_possible():
    E_new, s2, *_ = experiments.synthetic(np.random.default_rng(0), 6, 8)
    S = experiments.printed_sdp(E_new, s2)
    np.testing.assert_allclose(np.sum(E_new @ S * E_new, axis=1), s2, rtol=1e-3)


def test_warnings_are_counted_and_not_shown(monkeypatch):
    def warn(*arguments):
        warnings.warn("inaccurate")
        return arguments[2]

    monkeypatch.setitem(experiments.SOLVERS, "SCS", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = experiments.time_solvers(experiments.synthetic(np.random.default_rng(0), 6, 4), ["ours", "SCS"], 2)
    assert rows["SCS"][3] == 1 and rows["ours"][3] == 0


@pytest.mark.parametrize("runs", [1, 2])
def test_sanity_command(tmp_path, capsys, runs):
    experiments.sanity(options(tmp_path, command="sanity", quick=True, runs=runs))
    data, text = json.loads((tmp_path / "sanity.json").read_text()), capsys.readouterr().out
    assert np.shape(data["errors of mean, precision"]) == (runs, 10, 2)
    assert np.shape(data["few tuples"]) == (runs, len(data["n/g"]), 3, 2)
    assert np.shape(data["nonlinear features"]) == (runs, len(data["eps"]), 3, 2)
    assert text.count("supported") == 3 and "not supported" not in text and "nan" not in text
    assert (tmp_path / "sanity.png").stat().st_size > 20_000


# A cluster ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def cluster(tmp_path):
    """A Dask scheduler and two workers of one process each, on the loopback interface."""
    pytest.importorskip("distributed", reason="pip install distributed for the cluster tests")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10"}
    processes, started = [], {"env": environment, "cwd": tmp_path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        address = tmp_path / "scheduler.json"
        dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
                "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(address)]
        processes.append(subprocess.Popen(dask, **started))
        for k in range(2):
            dask = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address), "--nthreads", "1",
                    "--no-nanny", "--host", "127.0.0.1", "--no-dashboard", "--local-directory", str(tmp_path / f"worker{k}")]
            processes.append(subprocess.Popen(dask, **started))
        deadline = time.monotonic() + 60
        while not address.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        yield json.loads(address.read_text())["address"], processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_cluster_gives_the_same_results_even_if_a_worker_dies(cluster, tmp_path):
    address, processes = cluster
    arguments = ["table", "--datasets", "statlog", "--algorithms", "linear", "both-priors", "--steps", "500", "--runs", "10"]
    local = command(*arguments, "--out", tmp_path / "local")
    there = command(*arguments, "--out", tmp_path / "there", "--dask", address)
    assert local.returncode == 0 and there.returncode == 0, there.stderr
    process = subprocess.Popen([sys.executable, str(HERE / "experiments.py"), *arguments, "--seed", "0", "--out",
                                str(tmp_path / "killed"), "--dask", address], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    path, deadline = tmp_path / "killed" / "table.jsonl", time.monotonic() + 60
    while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    processes[2].kill()                                                   # in the middle of its runs
    assert process.wait(timeout=90) == 0, process.stderr.read()
    results = [without_seconds(experiments.read_lines(tmp_path / name / "table.jsonl")) for name in ("local", "there", "killed")]
    assert results[0] == results[1] == results[2] and len(results[0]) == 20


def test_dask_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)                 # as if it were not installed
    with pytest.raises(SystemExit, match="pip install distributed"):
        experiments.table(options(tmp_path, datasets=["statlog"], runs=1, steps=50, dask="tcp://127.0.0.1:1"))


def test_torch_is_used_with_one_thread_in_a_run(tmp_path):
    experiments.run_task(small_task(options(tmp_path), "linear"))
    assert torch.get_num_threads() == 1


# The choices, one at a time -----------------------------------------------------------------------------------------

def test_the_fast_text_network_is_the_plain_one():
    """Features, gradients and a few steps of training; the planted bug is an embedding that is looked up one place off."""
    plain, fast, off = nlts.TextCNN(40, 3, seed=1), experiments.FastTextCNN(40, 3, seed=1), experiments.FastTextCNN(40, 3, seed=1)
    x = torch.from_numpy(np.random.default_rng(0).integers(40, size=(7, 60)))
    x[:3, 20:] = 0                                                        # padding: many places with the same maximum
    for network in (plain, fast):
        (network(x) ** 2).sum().backward()
    torch.testing.assert_close(fast.features(x), plain.features(x), rtol=1e-4, atol=1e-5)
    for name, p in plain.named_parameters():
        torch.testing.assert_close(dict(fast.named_parameters())[name].grad, p.grad, rtol=1e-3, atol=1e-4)
    with experiments.swapped(off.embedding, forward=lambda words: nlts.TextCNN(40, 3, seed=1).embedding((words + 1) % 40)):
        assert not torch.allclose(off.features(x), plain.features(x), rtol=1e-2)


def test_swapped_functions_come_back_after_an_error():
    before = nlts.forgotten
    with pytest.raises(ZeroDivisionError), experiments.swapped(nlts, forgotten=None):
        assert nlts.forgotten is None
        1 / 0
    assert nlts.forgotten is before


@pytest.mark.parametrize("label", experiments.VARIANTS)
def test_every_ablation_changes_what_it_says(label):
    """After two learning phases posteriors are proper, differ from the default's, and the module is as it was."""
    variant, functions = experiments.VARIANTS[label], dict(vars(nlts))
    options, states = argparse.Namespace(seed=0, data_dir=None), []
    for v, name in (({}, None), (variant, label)):
        hyper = {"L": 40} | v.get("hyper", {}) | {"P": 10}
        task = experiments.make_task(options, "ablation", "statlog", "both-priors", 90, variant=name,
                                     memory=v.get("memory", 6), **hyper | {"L": min(hyper["L"], 70)})
        problem = experiments.make_problem(task, 3)
        agent = experiments.make_agent(task, problem, 3)
        with experiments.swapped(nlts, **v.get("swap", {})):
            experiments.play([problem], [agent])
        arm = agent.arms[0]
        assert agent.t == 90 and np.linalg.eigvalsh(arm.precision)[0] > 0 and np.isfinite(arm.mu_hat).all() and arm.b > 0
        states.append(np.concatenate([arm.mu_hat[:50], [arm.b], np.diag(arm.precision)[:50]]))
    assert not np.allclose(*states, rtol=1e-6)
    assert dict(vars(nlts)) == functions


def variant_agent(label, phases=0, **hyper):
    """An agent of the ablation on Statlog after some learning phases of 40 steps."""
    v = experiments.VARIANTS[label]
    options = argparse.Namespace(seed=0, data_dir=None)
    task = experiments.make_task(options, "ablation", "statlog", "both-priors", 40 * phases or 1, memory=6, variant=label,
                                 **{"L": 40, "P": 10} | hyper)
    problem = experiments.make_problem(task, 3)
    agent = experiments.make_agent(task, problem, 3)
    with experiments.swapped(nlts, **v.get("swap", {})):
        if phases:
            experiments.play([problem], [agent])
    return agent


def test_the_authors_optimizer_goes_on_and_starts_gently():
    """TensorFlow's RMSProp: g/sqrt(0.9 + 0.1 g^2) in the first step, at 0.1; the count goes on through the phases."""
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    p.grad = torch.tensor([0.3, -0.4])
    optimizer = experiments.AuthorsRMSProp([p])
    optimizer.step()
    torch.testing.assert_close(p.detach(), torch.tensor([1.0, 2.0]) - 0.1 * p.grad / torch.sqrt(0.9 + 0.1 * p.grad ** 2))
    p.grad = torch.tensor([30.0, -40.0])                                  # clipped to norm 5
    before = p.detach().clone()
    optimizer.step()
    square = 0.9 * (0.9 + 0.1 * torch.tensor([0.09, 0.16])) + 0.1 * torch.tensor([9.0, 16.0])
    torch.testing.assert_close(p.detach(), before - 0.1 / 1.5 * torch.tensor([3.0, -4.0]) / square.sqrt())
    assert variant_agent("the authors' RMSProp", phases=3).optimizer.steps == 30


def test_a_weak_mean_does_not_grow_with_the_phases():
    """Without training nothing moves, and lam w stands beside the data once, not once a phase."""
    agent, rng, f = variant_agent("the last layer believed with λ only", P=0), np.random.default_rng(0), np.zeros((7, 50))
    for t in range(240):
        context, reward = rng.normal(size=9), rng.normal()
        f[t % 7] += nlts.last_layer_activations(agent.network, context[None])[0] * reward
        agent.update(context, t % 7, reward)
    for arm, w, total in zip(agent.arms, agent.network.weights.detach().numpy(), f):
        np.testing.assert_allclose(arm.precision @ arm.mu_hat, total + 0.25 * w, atol=1e-6)


def test_a_constant_feature_changes_nothing_at_first():
    plain, constant = variant_agent("counted twice").network, variant_agent("a constant feature").network
    x = torch.randn(5, 9, dtype=torch.float64)
    torch.testing.assert_close(constant(x), plain(x))
    assert (constant.features(x)[:, -1] == 1).all() and constant.weights.shape == (7, 51)


# Two kinds of forgetting --------------------------------------------------------------------------------------------

def made_up(**means):
    """Result lines of two data sets, eight runs: a common difficulty of the run, and what each algorithm adds."""
    rng, lines = np.random.default_rng(0), []
    for dataset in ("statlog", "adult"):
        run_effect = 100 * rng.normal(size=8)
        for name in experiments.ALGORITHMS:
            reward = 4000 + means.get(name, 0.0) + run_effect + rng.normal(size=8)
            lines += [{"dataset": dataset, "algorithm": name, "run": k, "reward": reward[k]} for k in range(8)]
    return lines


MEANS = {"neural-linear": 300.0, "perfect-prior": 200.0, "both-priors": 180.0, "last-layer": 100.0, "mu-prior": 10.0}


def test_two_kinds_of_forgetting_are_told_apart():
    """Paired by run the difficulty of a run (standard deviation 100) cancels: within 5 standard errors of what was put in."""
    rewards = experiments.by_dataset(made_up(**MEANS))
    assert list(rewards) == ["adult", "statlog"]                          # in the order of the paper's table
    for own in rewards.values():
        network, posterior, (both, error), (last, _) = experiments.kinds(own)
        assert abs(network.mean() - 100) < 5 * np.sqrt(2 / 8) and abs(posterior.mean() - 200) < 5 * np.sqrt(2 / 8)
        assert abs(both - 0.9) < 5 * 0.007 and abs(last - 0.5) < 5 * 0.007 and 0 < error < 0.02
        unpaired = experiments.kinds(own | {"no-prior": own["no-prior"][::-1]})[2][1]
        assert unpaired > 5 * error                                       # the planted bug: runs that do not belong together


def test_the_jackknife_knows_the_spread_of_a_share():
    """Its standard error, averaged over 300 samples of 20 runs, is that of the share within 15 % (5 sigma: 20 %)."""
    rng, values, errors = np.random.default_rng(0), [], []
    for _ in range(300):
        whole = 10 + rng.normal(size=20)
        value, error = experiments.share(0.8 * whole + rng.normal(size=20), whole)
        values.append(value), errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15) and np.mean(values) == pytest.approx(0.8, abs=0.01)


def test_goals_are_counted_and_can_fail():
    text = experiments.goals_text(experiments.by_dataset(made_up(**MEANS)))
    assert re.search(r"at least as good .* 2 of 2 +met", text) and re.search(r"median .* 90 % +met", text)
    assert re.search(r"one standard error .* 2 of 2 +not met", text)      # the goal is six
    assert re.search(r"at least as good .* 0 of 2 +not met", experiments.goals_text(
        experiments.by_dataset(made_up(**MEANS | {"mu-prior": 500.0}))))
    assert re.search(r"median .* 50 % +not met", experiments.goals_text(
        experiments.by_dataset(made_up(**MEANS | {"both-priors": 100.0}))))
    assert re.search(r"within 2 % .* 0 of 2 +not met", experiments.goals_text(
        experiments.by_dataset(made_up(**MEANS | {"neural-linear": 600.0}))))


def test_data_sets_without_all_runs_are_left_out():
    lines = [line for line in made_up(**MEANS) if (line["dataset"], line["algorithm"], line["run"]) != ("adult", "linear", 7)]
    assert list(experiments.by_dataset(lines)) == ["statlog"]
    assert experiments.by_dataset([line for line in lines if line["algorithm"] != "no-prior"]) == {}
