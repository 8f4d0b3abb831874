"""Many runs: each is played in a process of its own, and appended to a file when it has ended.

A result names its task and its key (lab/keys.py). Results of older code stay on file, so that
--verify can take them over, but are never reported.
"""
import fcntl
import json
import math
import multiprocessing
import os
import pickle
import platform
import random
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import datasets
from lab import fast, kernels, keys
from lab.runs import Task, name_of, run_task

VERIFIED = 20, 0.02                                   # at least so many runs, and so large a share
NOT_COMPARED = "seconds", "key", "played_on", "taken_over"


def make_runs(options, dataset, algorithm, recipe, most=None, **more):
    """The tasks of an algorithm, one per run: as many as asked for, or at most `most`."""
    steps = int(min(options.steps, datasets.rows(dataset)))
    task = Task(options.command, dataset, algorithm, recipe, steps, seed=options.seed)
    runs = min(options.runs, most or options.runs)
    return [replace(task, run=run, **more) for run in range(runs)]


def execute(options, tasks):
    """Play the runs that are not on file; the results of all tasks, by run."""
    path = options.out / f"{options.command}.jsonl"
    tasks = sorted(tasks, key=lambda task: task.run)  # all tasks of a run come first
    wanted = {keys.key(task): task for task in tasks}
    if options.fresh:
        again = {keys.task_id(task) for task in tasks}
        rewrite(path, lambda result: None if result["task"] in again else result)
    if options.verify:
        verify(options, path, wanted)
    found = {result["key"]: result for result in read(path)}
    todo = playable({key: task for key, task in wanted.items() if key not in found})
    print(f"{options.command}: {len(wanted.keys() & found)} runs on file, {len(todo)} to play",
          file=sys.stderr)
    if todo:
        for name in fast.changed():
            print(f"nlts.{name} has changed: training with it, about 8 times slower",
                  file=sys.stderr)
        for result in played(options, todo, "runs"):
            append(path, result)
            found[result["key"]] = result
    results = complete_runs([found[key] for key in wanted if key in found])
    if not results:
        sys.exit("nothing to report: `python datasets.py` says how to get the data sets")
    return results


def playable(tasks):
    """The tasks whose data set is on this machine; prints each missing data set once."""
    missing = set()
    for dataset in dict.fromkeys(task.dataset for task in tasks.values()):
        try:
            datasets.available(dataset)
        except datasets.MissingData as error:
            print(f"skipped: {error}", file=sys.stderr)
            missing.add(dataset)
    return {key: task for key, task in tasks.items() if task.dataset not in missing}


def complete_runs(results):
    """Keep only runs that every algorithm of a problem finished; some have fewer."""
    finished = {}
    for result in results:
        groups = finished.setdefault(result["dataset"], {})
        groups.setdefault((result["algorithm"], result.get("variant")), set()).add(result["run"])
    return [result for result in results if all(
        result["run"] in runs or result["run"] > max(runs)
        for runs in finished[result["dataset"]].values())]


# Playing ------------------------------------------------------------------------------------------

class BadData(Exception):
    """A data file cannot be used; unlike datasets.DataError it can be sent by a worker."""


def play(task, key):
    """One run, in a worker; a cluster that was started before a change refuses."""
    if keys.key(task) != key:
        raise RuntimeError("this worker has loaded other code than the command: restart the "
                           "cluster, and let its workers see the same files")
    named = {"dataset": name_of(task.dataset), "algorithm": task.algorithm, "run": task.run,
             "steps": task.steps, "task": keys.task_id(task), "key": key, "played_on": machine()}
    if task.variant:
        named["variant"] = task.variant
    try:
        return named | run_task(task)
    except datasets.DataError as error:
        raise BadData(str(error)) from None


def machine():
    """Processor and versions, which are recorded but not in the key."""
    packages = [f"{name} {version(name)}" for name in ("numpy", "scipy", "torch", "cvxpy", "scs")]
    pinned = os.environ.get("OPENBLAS_CORETYPE", "not pinned")
    return ", ".join([kernels.processor() or platform.machine(), *packages, f"kernels {pinned}"])


def played(options, tasks, what):
    """Play tasks; yield each result as soon as its run has ended."""
    with executor(options) as pool:
        futures = [pool.submit(play, task, key) for key, task in tasks.items()]
        try:
            for future in progress(as_completed(futures), len(futures), what):
                yield future.result()
        except KeyboardInterrupt:
            sys.exit(f"\nstopped; finished runs are in {options.out}, the same command goes on")
        except BadData as error:
            sys.exit(f"\n{error}")
        finally:
            for future in futures:                    # after an error, none is played in vain
                future.cancel()


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


def stop_with(parent):
    """A worker whose parent was killed stops within a second, too."""
    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class OnWorkers:
    """Runs travel to a cluster's workers as bytes: its scheduler need not know our modules."""

    def __init__(self, pool):
        self.pool = pool

    def submit(self, *call):
        """The future of function(*arguments)."""
        def called(data):                             # inside another function: sent as it is
            function, *arguments = pickle.loads(data)
            return function(*arguments)

        return self.pool.submit(called, pickle.dumps(call))


@contextmanager
def executor(options):
    """Where runs are played: processes on this machine, or with --dask a cluster's workers."""
    if options.dask:
        from distributed import Client
        with Client(options.dask, timeout="20s") as client:
            folders = [os.path.abspath(folder) for folder in sys.path]
            client.register_worker_callbacks(lambda: sys.path.extend(folders))
            yield OnWorkers(client.get_executor())
    else:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.jobs, spawn, stop_with, (os.getpid(),)) as pool:
            yield pool


# Files --------------------------------------------------------------------------------------------

@contextmanager
def locked(path):
    """The right to write a file of results: whoever else wants it waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.stem}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read(path):
    """The results in a file, without an unfinished last line."""
    if not path.exists():
        return []
    results = []
    whole = path.read_bytes().rpartition(b"\n")[0]
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            result = json.loads(line)
            damaged = not {"key", "task"} <= set(result)
        except (ValueError, TypeError):
            damaged = True
        if damaged:
            sys.exit(f"{path}, line {number}: damaged; delete the line, and its run is played anew")
        results.append(result)
    return results


def as_line(result):
    """A result as a line of a file."""
    return json.dumps(result, separators=(",", ":"), ensure_ascii=False) + "\n"


def append(path, result):
    """Add a result, unless another command has added it meanwhile."""
    with locked(path), open(path, "a+b") as file:
        file.seek(0)
        data = file.read()
        data = data[:data.rfind(b"\n") + 1]           # a killed command left the rest
        file.truncate(len(data))
        if f'"key":"{result["key"]}"'.encode() not in data:
            file.write(as_line(result).encode())
            file.flush()
            os.fsync(file.fileno())


def rewrite(path, change):
    """Replace each result by change(result), or drop it where that is None."""
    with locked(path):
        results = [changed for result in read(path) if (changed := change(result))]
        with datasets.files.replacing(Path(path)) as file:
            file.write("".join(map(as_line, results)).encode())


# Taking over --------------------------------------------------------------------------------------

def verify(options, path, wanted):
    """Play a sample of the runs on file once more. If all agree, results of older code are taken
    over; else the file stays as it is, and the command ends."""
    on_file = {result["task"]: result for result in read(path)}          # the last one holds
    there = {key: task for key, task in wanted.items() if keys.task_id(task) in on_file}
    older = {key: task for key, task in there.items()
             if on_file[keys.task_id(task)]["key"] != key}
    verified = playable(older or there)
    sample = sample_of(verified)
    if not sample:
        sys.exit(f"--verify: {path} has no runs of this command")
    differing = sum(not agree(on_file[again["task"]], again)
                    for again in played(options, sample, "verifying"))
    if differing:
        sys.exit(f"--verify: {differing} of {len(sample)} runs differ, {path} stays as it is")
    new = {keys.task_id(task): key for key, task in verified.items()}
    rewrite(path, lambda result: taken_over(result, new, on_file))


def agree(before, again):
    """Whether a run has the same result as before; prints which fields differ."""
    differing = [name for name in before | again if name not in NOT_COMPARED
                 and before.get(name) != again.get(name)]
    parts = again["dataset"], again["algorithm"], again.get("variant"), f"run {again['run']}"
    answer = f"differs in {', '.join(differing)}" if differing else "the same"
    print(f"{', '.join(filter(None, parts))}: {answer}")
    return not differing


def taken_over(result, new, on_file):
    """The result with its new key and a note of the old one; None for an outdated result of the
    same task."""
    key = new.get(result["task"], result["key"])
    if result["key"] == key:
        return result
    if on_file[result["task"]]["key"] != result["key"]:
        return None
    return result | {"key": key, "taken_over": result["key"]}


def sample_of(tasks):
    """A random sample of the tasks that has every data set and every algorithm."""
    order = random.sample(list(tasks.items()), len(tasks))
    enough = max(VERIFIED[0], math.ceil(VERIFIED[1] * len(tasks)))
    sample, seen = {}, set()
    for key, task in order:
        fresh = {task.dataset, (task.algorithm, task.variant)} - seen
        if fresh or len(sample) < enough:
            sample[key] = task
            seen |= fresh
    return sample
