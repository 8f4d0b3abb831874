"""Many runs: each is an independent task, played in a process of its own and appended to a file.

A run's rows, their order, the network's first weights and the sampling depend on (experiment, data
set, run, seed) only: all algorithms see the same problem, and no result depends on --jobs.

A line of results names what was played by its fields, its settings by `config` and the program that
played it by `digest`. Lines of another program stay in the file, so that --verify can take them
over, but no report reads them.
"""
import functools
import hashlib
import importlib
import json
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

import datasets
import nlts
from lab import digest, recipes

LINEAR_HYPER = "lam", "a0", "b0", "initial_pulls"
SHOWN = 600                                           # contexts of which "values" are recorded
NOT_COMPARED = "seconds", "digest"                    # when a run is played once more


@dataclass(frozen=True)
class Task:
    """What one algorithm is to do on one problem."""
    experiment: str                # names the seeds: its tasks meet the same problems
    dataset: str
    algorithm: str
    recipe: recipes.Recipe
    steps: int
    config: str = ""               # names the settings
    variant: str = ""              # of the algorithm, if there are several
    hyper: dict = field(default_factory=dict)         # all of nlts.Config that the agent takes
    memory: int = recipes.MEMORY   # tuples per arm, if memory is limited
    delta: float | None = None     # of the wheel
    drift: bool = False            # rows in the order of their first principal component
    csv: str | None = None         # a table of one's own
    record: str = ""               # "regret" of each step, or "values" of the arms after run 0
    seed: int = 0
    data_dir: str | None = None
    run: int = 0


def make_task(o, dataset, algorithm, *, experiment=None, recipe=None, steps=None, hyper=None,
              **more):
    """The task of an algorithm with the options of a command; hyper: changes of nlts.Config."""
    recipe = recipe or recipes.RECIPES[algorithm]
    config = asdict(nlts.Config(**recipe.hyper | (hyper or {})))
    if recipe.agent is nlts.LinearTS:
        config = {name: config[name] for name in LINEAR_HYPER}
    task = Task(experiment or o.command, dataset, algorithm, recipe, steps or steps_of(o, dataset),
                hyper=config, csv=o.csv and str(o.csv), seed=o.seed,
                data_dir=o.data_dir and str(o.data_dir), **more)
    return replace(task, config=settings(task))


def steps_of(o, dataset):
    """The steps that are asked for, or as many as the data set has rows."""
    if o.csv:
        return min(o.steps, len(datasets.from_csv(o.csv)))
    if dataset in ("mushroom", "wheel"):              # drawn with replacement, drawn anew
        return o.steps
    return min(o.steps, datasets.SOURCES[dataset].rows)


def settings(task):
    """A short name of all that a result depends on but run, program and, of known data, files."""
    names = ("experiment", "dataset", "algorithm", "variant", "steps", "hyper", "memory", "delta",
             "drift", "seed")
    key = {name: getattr(task, name) for name in names}
    if task.csv:
        key["csv"] = hashlib.sha256(Path(task.csv).read_bytes()).hexdigest()
    recipe = task.recipe
    key["recipe"] = [described(part) for part in (recipe.agent, recipe.limited, recipe.network,
                                                  recipe.train, recipe.arguments,
                                                  recipe.intercept)]
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]


def described(part):
    """Part of a recipe as plain data: functions and classes by their names."""
    if isinstance(part, dict):
        return {key: described(value) for key, value in part.items()}
    if isinstance(part, functools.partial):
        return [described(part.func), list(part.args), described(part.keywords)]
    return f"{part.__module__}.{part.__qualname__}" if callable(part) else part


def functions_in(part):
    """The functions and classes in part of a recipe."""
    if isinstance(part, dict):
        return [one for value in part.values() for one in functions_in(value)]
    if isinstance(part, functools.partial):
        return functions_in({"func": part.func, **part.keywords})
    return [part] if callable(part) else []


# One run ------------------------------------------------------------------------------------------

def run_seed(task):
    """The seed of a run: the same for every algorithm."""
    key = [task.experiment, task.dataset, task.run, task.seed]
    if task.delta is not None:
        key.append(task.delta)
    data = "/".join(map(str, key)).encode()
    return int.from_bytes(hashlib.sha256(data).digest()[:4], "big")


def make_problem(task):
    """The problem of one run."""
    seed = run_seed(task)
    if task.csv:
        return datasets.from_csv(task.csv, steps=task.steps, seed=seed)
    if task.delta is not None:
        return datasets.wheel(task.delta, task.steps, seed)
    problem = datasets.load(task.dataset, task.steps, seed, task.data_dir)
    return datasets.drift(problem, seed=seed) if task.drift else problem


def make_run(task):
    """Problem and agent of a run; LinearTS gets an intercept, if its recipe says so."""
    problem = make_problem(task)
    if has_intercept(task.recipe):
        contexts = np.hstack([problem.contexts, np.ones((len(problem), 1))])
        problem = replace(problem, contexts=contexts)
    agent = recipes.make_agent(task.recipe, problem, task.memory, task.hyper, run_seed(task))
    return problem, agent


def has_intercept(recipe):
    """Whether contexts get a constant feature."""
    return recipe.agent is nlts.LinearTS and recipe.intercept


def play(problem, agent, watch=None):
    """The rewards (T,) of an agent on a problem. Before each update: watch(agent, context, arm)."""
    earned = np.empty(len(problem))
    for t, (context, rewards) in enumerate(zip(problem.contexts, problem.rewards, strict=True)):
        arm = agent.act(context)
        if watch:
            watch(agent, context, arm)
        earned[t] = rewards[arm]
        agent.update(context, arm, earned[t])
    return earned


class Exploration:
    """Counts the plays, after the initial pulls, of another arm than the one thought best."""

    def __init__(self):
        self.plays = self.explored = 0

    def __call__(self, agent, context, arm):
        if hasattr(agent, "arms") and agent.t >= agent.n_arms * agent.config.initial_pulls:
            self.plays += 1
            self.explored += arm != int(np.argmax(expected(agent, context[None])))

    def share(self):
        """The share of these plays; None where nothing was counted."""
        return round(self.explored / self.plays, 6) if self.plays else None


def expected(agent, contexts):
    """The reward that an agent expects of each arm in each of the contexts: (n, N)."""
    if isinstance(agent, nlts.LinearTS):
        phi = contexts
    else:
        phi = nlts.last_layer_activations(agent.network, contexts)
    if isinstance(agent, nlts.EpsilonGreedy):
        return phi @ nlts.last_layer_weights(agent.network).T
    return phi @ np.array([arm.mu_hat for arm in agent.arms]).T


def run_task(task, watch=None):
    """One run; a line of results. Before each update: watch(agent, context, arm)."""
    torch.set_num_threads(1)
    start, exploration = time.process_time(), Exploration()
    problem, agent = make_run(task)

    def watches(*step):
        exploration(*step)
        if watch:
            watch(*step)

    earned = play(problem, agent, watches)
    line = named(task) | {
        "arms": problem.n_arms, "dim": problem.dim - has_intercept(task.recipe),
        "reward": rounded(earned.sum()), "optimal": rounded(problem.optimal.sum()),
        "uniform": rounded(problem.rewards.mean(1).sum()),           # any arm at random
        "best_arm": rounded(problem.rewards.sum(0).max()),           # one arm, always
        "explored": exploration.share(), "seconds": round(time.process_time() - start, 3)}
    if task.record == "regret":
        line["regret"] = [rounded(x) for x in problem.optimal - earned]
    if task.record == "values" and task.run == 0:
        line["values"] = values(agent, problem)
    return line


def values(agent, problem):
    """Of the first contexts: what each arm paid, and what the agent expects of it in the end."""
    contexts, rewards = problem.contexts[:SHOWN], problem.rewards[:SHOWN]
    found = {"rewards": rewards, "expected": expected(agent, contexts), "contexts": contexts}
    return {name: x.round(3).tolist() for name, x in found.items()}


def named(task):
    """The fields that say what was played; those that do not apply are left out."""
    line = {"dataset": task.dataset, "algorithm": task.algorithm, "variant": task.variant,
            "run": task.run, "steps": task.steps, "delta": task.delta, "drift": task.drift}
    plain = asdict(nlts.Config())
    line["hyper"] = {name: x for name, x in task.hyper.items() if x != plain[name]}
    line = {name: value for name, value in line.items()
            if value is not None and value is not False and value not in ("", {})}
    return line | {"config": task.config}


def rounded(x):
    """A number as it is written into a line."""
    return int(x) if x == int(x) else round(float(x), 6)


# Many runs ----------------------------------------------------------------------------------------

def execute(o, tasks, play=run_task):
    """Play the runs that are not yet in out/COMMAND.jsonl; the lines of all tasks, in their order.

    All tasks of a run come first. A data set that is not here is skipped, but told if its lines
    are in the file.
    """
    o.out.mkdir(parents=True, exist_ok=True)
    path = o.out / f"{o.command}.jsonl"
    programs = {task.config: program_of(task, play) for task in tasks}
    found = {(line["config"], line["run"]): line for line in read_lines(path)}    # the last holds
    wanted = [replace(task, run=run) for run in range(o.runs) for task in tasks]
    if o.verify:
        verify(o, path, found, wanted, programs, play)
    mine = {} if o.fresh else {(task.config, task.run): found[task.config, task.run]
                               for task in wanted if (task.config, task.run) in found}
    lines = [line for line in mine.values() if line["digest"] == programs[line["config"]]]
    done = {(line["config"], line["run"]) for line in lines}
    todo = [task for task in wanted if (task.config, task.run) not in done]
    todo = [] if o.verify else playable(o, todo)
    say(o.command, lines, mine, programs, todo)
    if todo:
        with executor(o) as pool, open(path, "a", encoding="utf-8") as file:
            futures = {pool.submit(play, task): programs[task.config] for task in todo}
            lines += append(file, futures)
        keep_last(path)
    if not lines:
        sys.exit("nothing to tell: `python datasets.py` says how to get the data sets")
    order = {task.config: i for i, task in enumerate(tasks)}
    return sorted(in_pairs(lines), key=lambda line: (order[line["config"]], line["run"]))


def in_pairs(lines):
    """The lines of those runs of a problem that all of its algorithms have; these are all, unless
    its data is missing here and the file is not complete."""
    runs = {}
    for line in lines:
        problem = runs.setdefault((line["dataset"], line.get("delta"), line["steps"]), {})
        problem.setdefault(line["config"], set()).add(line["run"])
    common = {problem: set.intersection(*own.values()) for problem, own in runs.items()}
    return [line for line in lines
            if line["run"] in common[line["dataset"], line.get("delta"), line["steps"]]]


def program_of(task, play):
    """{part: digest} of the program that plays a task."""
    recipe = task.recipe
    parts = {"agent": recipe.agent, "network": recipe.network, "train": recipe.train,
             "arguments": recipe.arguments, "play": play}
    return digest.program(functions_in(parts))


def say(command, lines, mine, programs, todo):
    """How many runs were read, how many are set aside and why, and how many are played."""
    aside = Counter()
    for line in mine.values():
        now = programs[line["config"]]
        changed = [part for part in now if line["digest"].get(part) != now[part]]
        if changed:
            aside[", ".join(changed)] += 1
    text = f"{command}: {len(lines)} runs read, {len(todo)} to play"
    for changed, count in aside.items():
        text += f"; {count} set aside, of another program: {changed} has changed since"
    print(text, file=sys.stderr)


def here(o, names):
    """Those of the data sets that are on this machine; of the others, how to get them."""
    found = []
    for name in dict.fromkeys(names):
        try:
            if name in datasets.SOURCES and not o.csv:
                datasets.table(datasets.SOURCES[name], o.data_dir)
            found.append(name)
        except datasets.MissingData as error:
            print(f"skipped: {error}", file=sys.stderr)
    return found


def playable(o, tasks):
    """The tasks whose data set is on this machine."""
    found = here(o, [task.dataset for task in tasks])
    return [task for task in tasks if task.dataset in found]


def verify(o, path, found, wanted, programs, play):
    """Play a sample of the runs in the file once more. If all agree, the file is taken over for the
    program as it is now; else it is left as it is, and the command ends."""
    there = [task for task in wanted if (task.config, task.run) in found]
    sample = playable(o, sample_of(there))
    if not sample:
        sys.exit(f"--verify: {path} has no runs of this command")
    with executor(o) as pool:
        futures = [pool.submit(play, task) for task in sample]
        again = [future.result() for future in progress(futures, len(futures), "verifying")]
    differing = []
    for task, line in zip(sample, again, strict=True):
        before = found[task.config, task.run]
        fields = [name for name in {**before, **line} if name not in NOT_COMPARED
                  and before.get(name) != line.get(name)]
        if fields:
            which = filter(None, (task.dataset, task.algorithm, task.variant, f"run {task.run}"))
            differing.append(f"{', '.join(which)}: {', '.join(fields)}")
    if differing:
        sys.exit(f"--verify: {len(differing)} of {len(sample)} runs differ, {path} stays as it "
                 "is:\n" + "\n".join(differing))
    for task in there:
        found[task.config, task.run]["digest"] = programs[task.config]
    write_lines(path, found)
    print(f"--verify: {len(sample)} runs played once more agree to the last digit; all "
          f"{len(there)} are of the program as it is now", file=sys.stderr)


def sample_of(tasks, least=12):
    """Tasks that cover each algorithm, variant and problem, at least twelve if there are so many;
    they are chosen at random, but always the same for the same tasks."""
    order = np.random.default_rng(len(tasks)).permutation(len(tasks))
    seen, chosen, others = set(), [], []
    for i in order:
        task = tasks[i]
        new = {("algorithm", task.algorithm, task.variant, str(task.hyper)),
               ("problem", task.dataset, task.delta, task.drift)} - seen
        seen |= new
        (chosen if new else others).append(task)
    return chosen + others[:max(least - len(chosen), 0)]


def read_once(o, measure):
    """What measure(o) returns, as plain data; read from out/COMMAND.json if the program as it is
    now wrote that with the same options."""
    path, program = o.out / f"{o.command}.json", digest.program([measure])
    given = {"steps": o.steps, "runs": o.runs, "datasets": o.datasets and list(o.datasets),
             "seed": o.seed, "quick": o.quick}
    if path.exists() and not o.fresh:
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["options"] == given and before["digest"] == program:
            print(f"{o.command}: read from {path}; --fresh measures anew", file=sys.stderr)
            return before
    data = {"options": given, "digest": program, **measure(o)}
    return json.loads(json.dumps(data))


def read_lines(path):
    """The lines of results in a file; a last line that was not finished is left out."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[:data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    return [json.loads(line) for line in whole.splitlines()]


def as_text(line):
    """A line of a results file."""
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n"


def write_lines(path, lines):
    """Replace a file of results, or leave it as it was."""
    with datasets.files.replacing(path) as file:
        file.write("".join(map(as_text, lines.values())).encode())


def keep_last(path):
    """Of several lines of one run only the last stays in the file."""
    lines = read_lines(path)
    last = {(line["config"], line["run"]): line for line in lines}
    if len(last) < len(lines):
        write_lines(path, last)


def append(file, futures):
    """Wait for the runs; each line is on the disk as soon as its run has ended."""
    lines = []
    try:
        for future in progress(as_completed(futures), len(futures), "runs"):
            lines.append(future.result() | {"digest": futures[future]})
            file.write(as_text(lines[-1]))
            file.flush()
            os.fsync(file.fileno())
    except KeyboardInterrupt:
        sys.exit(f"\nstopped; finished runs are in {file.name}, the same command goes on there")
    finally:
        for future in futures:                        # after an error: none is played in vain
            future.cancel()
    return lines


def progress(items, total, what):
    """Pass the items on, and print progress on standard error; in a log, twice per minute."""
    end, pause = ("\r", 0) if sys.stderr.isatty() else ("\n", 30)
    start = shown = time.monotonic()
    for done, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - shown >= pause or done == total:
            shown = now
            left = (now - start) * (total - done) / done / 60
            print(f"{what}: {done} of {total}, {left:.1f} min left  ", end=end, file=sys.stderr)


# Processes and clusters ---------------------------------------------------------------------------

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
    folder = str(digest.HERE)                         # which the workers see
    with Client(o.dask, timeout="20s") as client:
        client.register_worker_callbacks(lambda: sys.path.insert(0, folder))
        pool = client.get_executor()

        def submit(function, task):                   # as text: the scheduler need not know them
            module, name, data = function.__module__, function.__name__, pickle.dumps(task)
            return pool.submit(lambda: getattr(importlib.import_module(module), name)(
                pickle.loads(data)))

        yield SimpleNamespace(submit=submit)
