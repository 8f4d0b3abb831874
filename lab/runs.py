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
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

import datasets
import nlts
from lab import agents

HERE = Path(__file__).resolve().parent.parent
NOT_HASHED = "run", "data_dir", "trace", "hash"
LINEAR_HYPER = "lam", "a0", "b0", "initial_pulls"


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


def play(problem, agent, watch=None):
    """The rewards (T,) of an agent on a problem. After each step: watch(agent, context, arm)."""
    earned = np.empty(len(problem))
    for t, (context, rewards) in enumerate(zip(problem.contexts, problem.rewards, strict=True)):
        arm = agent.act(context)
        earned[t] = rewards[arm]
        agent.update(context, arm, earned[t])
        if watch:
            watch(agent, context, arm)
    return earned


def make_run(task):
    """Problem and agent of a task."""
    seed = run_seed(task["experiment"], task["dataset"], task["run"], task["seed"])
    problem, recipe = make_problem(task, seed), recipe_of(task)
    if recipe.agent is nlts.LinearTS:                 # an intercept
        contexts = np.hstack([problem.contexts, np.ones((len(problem), 1))])
        problem = replace(problem, contexts=contexts)
    return problem, agents.make_agent(recipe, problem, task["memory"], task["config"], seed)


def run_task(task, watch=None):
    """One run; a line of results."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    problem, agent = make_run(task)
    earned = play(problem, agent, watch)
    line = {"dataset": task["dataset"], "algorithm": task["algorithm"], "run": task["run"],
            "steps": len(earned), "arms": problem.n_arms,
            "dim": problem.dim - isinstance(agent, nlts.LinearTS),     # without the intercept
            "reward": round(float(earned.sum()), 6),
            "optimal": round(float(problem.optimal.sum()), 6),
            "seconds": round(time.perf_counter() - start, 3), "config": task["hash"]}
    if task["trace"]:
        regret = (problem.optimal - earned).tolist()
        line["regret"] = [int(x) if x == int(x) else round(x, 6) for x in regret]
    return line


def make_task(o, experiment, dataset, algorithm, steps, *, module="lab.agents", recipe=None,
              memory=agents.MEMORY, csv=None, trace=False, **hyper):
    """What one algorithm, a recipe of a module, is to do on one data set, as plain data."""
    task = {"experiment": experiment, "dataset": dataset, "algorithm": algorithm, "steps": steps,
            "seed": o.seed, "recipe": [module, recipe or algorithm], "memory": memory,
            "csv": csv and str(csv), "data_dir": o.data_dir and str(o.data_dir), "trace": trace}
    made = recipe_of(task)
    task["config"] = asdict(nlts.Config(**made.hyper | hyper))
    if made.agent is nlts.LinearTS:
        task["config"] = {key: task["config"][key] for key in LINEAR_HYPER}
    return task | {"hash": config_hash(task)}


def config_hash(task):
    """Names all that a result depends on but the run and, of known data sets, the files."""
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
    if dataset == "mushroom":                         # drawn with replacement
        return steps
    return min(steps, len(datasets.table(datasets.SOURCES[dataset], o.data_dir).y))


def present(o, names):
    """Those of the data sets that are on this machine; of the others, how to get them."""
    found = []
    for name in names:
        try:
            datasets.table(datasets.SOURCES[name], o.data_dir)
            found.append(name)
        except datasets.MissingData as error:
            print(f"skipped: {error}", file=sys.stderr)
    if not found:
        sys.exit("none of the data sets is here: `python datasets.py` says how to get them")
    return found


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
    from distributed import Client
    with Client(o.dask, timeout="20s") as client:     # its workers see this folder
        client.register_worker_callbacks(lambda: sys.path.insert(0, str(HERE)))
        pool = client.get_executor()

        def submit(function, *arguments):             # by name: the scheduler need not know it
            module, name = function.__module__, function.__name__
            return pool.submit(lambda: getattr(importlib.import_module(module), name)(*arguments))

        yield SimpleNamespace(submit=submit)


def execute(o, name, tasks, runs, run_task=run_task):
    """Play what is not yet in out/name.jsonl, all tasks of a run first; all lines of the tasks."""
    path = o.out / f"{name}.jsonl"
    o.out.mkdir(parents=True, exist_ok=True)
    order = {task["hash"]: i for i, task in enumerate(tasks)}
    lines = [line for line in read_lines(path) if line["config"] in order and line["run"] < runs]
    done = {(line["config"], line["run"]) for line in lines}
    todo = [task | {"run": run} for run in range(runs) for task in tasks
            if (task["hash"], run) not in done]
    if todo:
        with executor(o) as pool, open(path, "a") as file:
            lines += append(file, [pool.submit(run_task, task) for task in todo])
    return sorted(lines, key=lambda line: (order[line["config"]], line["run"]))


def append(file, futures):
    """Wait for the runs; each line is on the disk as soon as its run has ended."""
    lines = []
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
    end, pause = ("\r", 0) if sys.stderr.isatty() else ("\n", 30)
    start = shown = time.monotonic()
    for done, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - shown >= pause or done == total:
            shown = now
            left = (now - start) * (total - done) / done / 60
            print(f"{what}: {done} of {total}, {left:.1f} min left  ", end=end, file=sys.stderr)
