"""Many runs: each is an independent task, played in a process of its own and appended to a file.

A run's rows, their order, the network's first weights and the sampling depend on (experiment, data
set, run, seed) only: all algorithms see the same problem, and no result depends on --jobs.
"""
import functools
import hashlib
import importlib
import inspect
import json
import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

import datasets
import nlts
from lab import agents

HERE = Path(__file__).resolve().parent.parent
NOT_HASHED = "run", "data_dir", "trace", "hash"
LINEAR_HYPER = "lam", "a0", "b0", "initial_pulls"


# One run ------------------------------------------------------------------------------------------

def run_seed(experiment, dataset, run, seed=0):
    """The seed of a run: the same for every algorithm."""
    key = f"{experiment}/{dataset}/{run}/{seed}"
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")


def make_problem(task, seed):
    """The problem of one run. The data set is a name, "wheel DELTA" or "drifting NAME"."""
    steps, kind, _, rest = task["steps"], *task["dataset"].partition(" ")
    if task["csv"]:
        return datasets.from_csv(task["csv"], steps=steps, seed=seed)
    if kind == "wheel":
        return datasets.wheel(float(rest), steps, seed)
    if kind == "drifting":
        return datasets.drift(datasets.load(rest, steps, seed, task["data_dir"]), seed=seed)
    return datasets.load(kind, steps, seed, task["data_dir"])


def recipe_of(task):
    """The recipe that a task names: an entry of RECIPES in a module."""
    module, name = task["recipe"]
    return importlib.import_module(module).RECIPES[name]


class Stopwatch:
    """Seconds spent in functions, by part."""

    def __init__(self):
        self.seconds = {"train": 0.0, "priors": 0.0}

    def wrap(self, part, function):
        """The function, timed."""
        @functools.wraps(function)
        def timed(*arguments, **options):
            start = time.perf_counter()
            result = function(*arguments, **options)
            self.seconds[part] += time.perf_counter() - start
            return result

        return timed


def play(problem, agent):
    """Let the agent play the problem; the rewards (T,)."""
    earned = np.empty(len(problem))
    for t, (context, rewards) in enumerate(zip(problem.contexts, problem.rewards, strict=True)):
        arm = agent.act(context)
        earned[t] = rewards[arm]
        agent.update(context, arm, earned[t])
    return earned


def make_run(task):
    """Problem and agent of a task, and the stopwatch of the agent's learning phases."""
    seed = run_seed(task["experiment"], task["dataset"], task["run"], task["seed"])
    problem, recipe, watch = make_problem(task, seed), recipe_of(task), Stopwatch()
    if recipe.agent is nlts.LinearTS:
        problem = agents.with_intercept(problem)
    agent = agents.make_agent(recipe, problem, task["memory"], task["config"], seed, watch.wrap)
    return problem, agent, watch


def run_task(task):
    """One run; a line of results."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    problem, agent, watch = make_run(task)
    earned = play(problem, agent)
    seconds = watch.seconds | {"total": time.perf_counter() - start}
    line = {"dataset": task["dataset"], "algorithm": task["algorithm"], "run": task["run"],
            "steps": len(earned), "arms": problem.n_arms,
            "dim": problem.dim - (recipe_of(task).agent is nlts.LinearTS),
            "reward": round(float(earned.sum()), 6),
            "optimal": round(float(problem.optimal.sum()), 6),
            "seconds": {part: round(s, 3) for part, s in seconds.items()}, "config": task["hash"]}
    if task["trace"]:
        regret = (problem.optimal - earned).tolist()
        line["regret"] = [int(x) if x == int(x) else round(x, 6) for x in regret]
    return line


# Tasks --------------------------------------------------------------------------------------------

def make_task(o, experiment, dataset, algorithm, steps, *, module="lab.agents", recipe=None,
              memory=agents.MEMORY, csv=None, trace=False, **hyper):
    """What one algorithm is to do on one data set, as plain data; `execute` fills in the run.

    algorithm   the name in the results; recipe: the entry of RECIPES in `module`, if not the same
    """
    name = [module, recipe or algorithm]
    task = {"experiment": experiment, "dataset": dataset, "algorithm": algorithm, "steps": steps,
            "seed": o.seed, "recipe": name, "memory": memory, "csv": csv and str(csv),
            "data_dir": o.data_dir and str(o.data_dir), "trace": trace}
    made = recipe_of(task)
    config = asdict(nlts.Config(**made.hyper | hyper))
    if made.agent is nlts.LinearTS:
        config = {key: config[key] for key in LINEAR_HYPER}
    task["config"] = config
    return task | {"hash": config_hash(task)}


def config_hash(task):
    """Names everything that a result depends on, but for the run."""
    key = {name: value for name, value in task.items() if name not in NOT_HASHED}
    if task["csv"]:
        key["csv"] = hashlib.sha256(Path(task["csv"]).read_bytes()).hexdigest()
    made = recipe_of(task)
    key["made of"] = [describe(part, task["recipe"][0]) for part in
                      (made.agent, made.limited, made.network, made.train, made.arguments)]
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]


def describe(part, module):
    """Part of a recipe as plain data; what a study defines itself counts with its source."""
    if isinstance(part, dict):
        return {key: describe(value, module) for key, value in part.items()}
    if isinstance(part, functools.partial):
        return [describe(part.func, module), describe(part.keywords, module), list(part.args)]
    if not callable(part):
        return part
    if part.__module__ == module:
        return inspect.getsource(part)
    return f"{part.__module__}.{part.__qualname__}"


def steps_of(o, dataset, full=5000, quick=1300):
    """The steps of a run: those asked for, or as many as there are rows."""
    steps = o.steps or (quick if o.quick else full)
    if o.csv:
        return min(steps, len(datasets.from_csv(o.csv)))
    source = datasets.SOURCES[dataset]
    rows = len(datasets.table(source, o.data_dir).y)
    return steps if dataset == "mushroom" else min(steps, rows)    # drawn with replacement


def present(o, names):
    """Those of the data sets that are on this machine; of the others, how to get them."""
    found = []
    for name in names:
        try:
            datasets.table(datasets.SOURCES[name], o.data_dir)
        except datasets.MissingData as error:
            print(f"skipped: {error}", file=sys.stderr)
        else:
            found.append(name)
    if not found:
        sys.exit("none of the data sets is here: `python datasets.py` says how to get them")
    return found


# Many runs ----------------------------------------------------------------------------------------

def read_lines(path):
    """The result lines of a file; a last line that was not finished is cut off."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[:data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    return [json.loads(line) for line in whole.splitlines()]


def stop_with(parent):
    """A worker whose parent was killed stops within a second, too."""
    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def executor(o):
    """Where runs are played: processes on this machine, or with --dask a cluster's workers."""
    if not o.dask:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(o.jobs, spawn, stop_with, (os.getpid(),)) as pool:
            yield pool
        return
    try:
        from distributed import Client
    except ImportError:
        sys.exit("--dask needs the package distributed: pip install distributed")
    with Client(o.dask, timeout="20s") as client:
        yield Cluster(client.get_executor())


class Cluster:
    """An executor of functions of this folder, which workers see on a shared disk."""

    def __init__(self, pool):
        self.pool = pool

    def submit(self, function, *arguments):
        """As submit of an executor; the function is found by its name."""
        folder, module, name = str(HERE), function.__module__, function.__name__

        def there(*arguments):                        # a local function travels with its code
            import importlib
            import sys
            if folder not in sys.path:
                sys.path.insert(0, folder)
            return getattr(importlib.import_module(module), name)(*arguments)

        return self.pool.submit(there, *arguments)


def execute(o, name, tasks, runs):
    """Play what is not yet in out/name.jsonl, appending each run; all lines of the tasks.

    Runs are played in order, all tasks of a run first: a stopped command leaves whole runs.
    """
    path = o.out / f"{name}.jsonl"
    o.out.mkdir(parents=True, exist_ok=True)
    order = {task["hash"]: i for i, task in enumerate(tasks)}
    lines = [line for line in read_lines(path) if line["config"] in order and line["run"] < runs]
    done = {(line["config"], line["run"]) for line in lines}
    todo = [task | {"run": run} for run in range(runs) for task in tasks
            if (task["hash"], run) not in done]
    if done:
        print(f"{len(done)} runs are already in {path}", file=sys.stderr)
    if todo:
        with executor(o) as pool, open(path, "a") as file:
            lines += append(pool, file, todo)
    return sorted(lines, key=lambda line: (order[line["config"]], line["run"]))


def append(pool, file, tasks):
    """Play the tasks; each line is on the disk as soon as its run has ended."""
    lines = []
    futures = [pool.submit(run_task, task) for task in tasks]
    try:
        for future in progress(as_completed(futures), len(futures), "runs"):
            lines.append(future.result())
            file.write(json.dumps(lines[-1], separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except KeyboardInterrupt:
        sys.exit(f"\nstopped; finished runs are in {file.name}, the same command goes on there")
    finally:
        for future in futures:                        # after an error: none is played in vain
            future.cancel()
    return lines


def progress(items, total, what):
    """Pass the items on, with a line of progress on standard error; in a log, two a minute."""
    screen = sys.stderr.isatty()
    start = shown = time.monotonic()
    for done, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if not screen and now - shown < 30 and done < total:
            continue
        shown = now
        left = (now - start) * (total - done) / done
        text = f"{what}: {done} of {total}, {left // 60:.0f}:{left % 60:02.0f} min left   "
        print(text, end="\r" if screen and done < total else "\n", file=sys.stderr, flush=True)
