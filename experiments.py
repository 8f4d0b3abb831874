"""Every figure and table of the paper is one command; `python experiments.py` lists them.

A command measures, tells what it found beside what the paper says, and draws. It writes its words,
its numbers and its picture into figures/. Runs in a file NAME.jsonl are not played again.
"""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")         # before numpy: one thread a process

import argparse  # noqa: E402
import importlib  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

import datasets  # noqa: E402
import nlts  # noqa: E402
from lab import pages, paper, verdicts  # noqa: E402
from lab.agents import ALGORITHMS  # noqa: E402
from lab.runs import HERE, execute, make_run, make_task, play, present, steps_of  # noqa: E402
from lab.text import Report, rough  # noqa: E402

COMMANDS = {  # name: (where it is, what it shows, minutes on two cores)
    "forgetting": ("experiments:forgetting", "Sec. 4.1: regret around each retraining", "2"),
    "table": ("experiments:table", "Sec. 4.2: real data, two kinds of forgetting", "120"),
    "amazon": ("experiments:amazon", "Sec. 4.3: text, Thompson sampling and ε-greedy", "70"),
    "wheel": ("experiments:wheel", "Appendix B: the wheel", "30"),
    "sanity": ("lab.sanity:sanity", "Appendix C in numbers, and where its assumptions end", "1"),
    "drift": ("experiments:drift", "ours: contexts that drift away from the buffer", "15"),
    "exploration": ("experiments:exploration", "ours: why limited memory can beat full", "25"),
    "complexity": ("lab.complexity:complexity", "Sec. 3.1 measured", "2"),
    "matching": ("lab.matching:matching", "Eq. 6: solvers compared", "15"),
    "calibration": ("lab.calibration:calibration", "ours: how certain each prior is", "20"),
    "ablation": ("lab.ablation:ablation", "ours: what each open choice is worth", "45"),
    "speed": ("lab.speed:speed", "ours: what a step and a phase cost", "1"),
    "picture": ("lab.picture:picture", "the picture of README.md", "1"),
    "results": ("lab.pages:results", "figures/README.md and the numbers in README.md", "0"),
}


def forgetting(o):
    """Figure 1: regret on Statlog around each retraining."""
    from lab import drawings  # here and below, not above: matplotlib is slow to import
    steps = o.steps or (1200 if o.quick else 4000)
    lines = played(o, 10, [make_task(o, "forgetting", "statlog", name, steps, trace=True)
                           for name in o.algorithms])
    regret = {name: np.array([line["regret"] for line in lines if line["algorithm"] == name])
              for name in o.algorithms}
    return Report(verdicts.forgetting(regret, nlts.Config.L) + rough(o),
                  figures={"forgetting": drawings.forgetting(regret, nlts.Config.L)})


def played(o, runs, tasks):
    """Lines of results: as many runs as asked for, two with --quick, or as many as said here."""
    return execute(o, o.command, tasks, o.runs or (2 if o.quick else runs))


def sets_of(o, names):
    """The data sets that are here, of those asked for, of one with --quick, or of these."""
    return present(o, o.datasets or (["statlog"] if o.quick else names))


def table(o):
    """Table 1, two kinds of forgetting, and a verdict on every claim."""
    sets = [str(o.csv)] if o.csv else sets_of(o, paper.TABLE)
    lines = played(o, paper.RUNS, [
        make_task(o, "table", dataset, name, steps_of(o, dataset), csv=o.csv)
        for dataset in sets for name in o.algorithms])
    rewards = verdicts.by_dataset(lines)
    report = Report(verdicts.table(lines, rewards) + rough(o))
    if verdicts.complete(rewards):
        from lab import drawings
        report.figures["kinds"] = drawings.kinds(rewards)
        report.pages["summary.md"] = pages.summary(rewards)
    return report


def amazon(o):
    """Table 2: a text network on Amazon reviews, Thompson sampling and ε-greedy."""
    present(o, ["amazon"])
    names = ["ε=0.1"] if o.quick else ["ε=0.1", "ε=0.2", "ε=0.3"]
    names += [name for name in ("neural-linear", "both-priors", "carried") if name in o.algorithms]
    steps, P = steps_of(o, "amazon", quick=450), 5 if o.quick else nlts.Config.P
    lines = played(o, 5, [make_task(o, "amazon", "amazon", name, steps, P=P) for name in names])
    ratings = datasets.table(datasets.SOURCES["amazon"], o.data_dir).y
    return Report(verdicts.amazon(verdicts.by_dataset(lines)["amazon"], steps, ratings) + rough(o))


WHEEL = [  # name in the results, algorithm, hyperparameters, variant of it in lab/ablation.py
    ("linear", "linear", {}, None),
    ("neural-linear", "neural-linear", {}, None),
    ("both-priors", "both-priors", {}, None),
    ("carried", "carried", {}, None),
    ("both-priors, b⁰ = 0.6", "both-priors", {"b0": 0.6}, None),
    ("both-priors, b⁰ = 0.06", "both-priors", {"b0": 0.06}, None),    # the noise that there is
    ("both-priors, twice", "both-priors", {}, "both-priors, counted twice in Φ⁰"),
]
WHEEL_PHASES = {"L": 200, "P": 400}


def wheel(o):
    """Table 3: the wheel bandit, and a picture of what was learned."""
    from lab import drawings
    steps = o.steps or (1000 if o.quick else 4000)
    tasks = []
    for delta in paper.WHEEL:
        for name, algorithm, hyper, variant in WHEEL:
            if algorithm in o.algorithms:
                module = "lab.ablation" if variant else "lab.agents"
                tasks.append(make_task(o, "wheel", f"wheel {delta}", name, steps, module=module,
                                       recipe=variant or algorithm, **WHEEL_PHASES | hyper))
    if not tasks:
        sys.exit("wheel plays linear, neural-linear, both-priors and carried")
    lines = played(o, 50, tasks)
    rows = {}
    for name in ("linear", "both-priors"):
        task = make_task(o, "wheel", "wheel 0.5", name, steps, **WHEEL_PHASES)
        problem, rows[name] = predictions(task)
    rows = {"reward samples": problem.rewards, **rows}
    of = {name: algorithm for name, algorithm, *_ in WHEEL}
    return Report(verdicts.wheel(lines, verdicts.by_dataset(lines), of) + rough(o),
                  figures={"wheel": drawings.wheel(problem.contexts, rows, 0.5)})


def predictions(task):
    """The problem of a task's first run, and at its end the expected reward of each arm, (T, N)."""
    problem, agent = make_run(task | {"run": 0})
    play(problem, agent)
    phi = problem.contexts
    if not isinstance(agent, nlts.LinearTS):
        phi = nlts.last_layer_activations(agent.network, phi)
    return problem, np.column_stack([phi @ arm.mu_hat for arm in agent.arms])


def drift(o):
    """Rows along their first principal component: the buffer is not like what was forgotten."""
    lines = played(o, 20, [
        make_task(o, "drift", f"drifting {dataset}", name, steps_of(o, dataset))
        for dataset in sets_of(o, ["statlog", "covertype", "adult"]) for name in o.algorithms])
    rewards = verdicts.by_dataset(lines)
    text, figures = verdicts.rewards_text(lines, rewards), {}
    if verdicts.complete(rewards):
        from lab import drawings
        text += "\n\n" + verdicts.kinds_text(rewards)
        text += "\n\n" + verdicts.minus_text("gained", rewards, "no-prior")
        figures["drift"] = drawings.kinds(rewards)
    return Report(text + rough(o), figures=figures)


def exploration(o):
    """Why the paper's prior can beat full memory: b0 of the noise prior is too large."""
    from lab import drawings
    noise = 6.0, 0.6, 0.06
    names = [name for name in verdicts.EXPLORED if name in ("neural-linear", *o.algorithms)]
    lines = played(o, 10, [
        make_task(o, "exploration", dataset, f"{name}, b⁰ = {b0:g}", steps_of(o, dataset),
                  recipe=name, b0=b0)
        for dataset in sets_of(o, ["statlog", "census", "mushroom", "adult", "financial", "jester"])
        for name in names for b0 in noise])
    rewards = {b0: verdicts.with_noise(lines, b0) for b0 in noise}
    return Report(verdicts.exploration(rewards) + rough(o),
                  figures={"exploration": drawings.exploration(rewards)})


def parse(argv):
    """The command line as a namespace."""
    parser = argparse.ArgumentParser(description="Without a command: lists the commands.")
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("--quick", action="store_true", help="a rough version, in half a minute")
    parser.add_argument("--runs", type=int, help="number of runs (default: as in the paper)")
    parser.add_argument("--steps", type=int, help="steps a run (default: as in the paper)")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other runs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (one a core)")
    parser.add_argument("--out", type=Path, help="folder (figures, figures/quick, figures/own)")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", default=[],
                        help="only these of " + ", ".join(ALGORITHMS))
    parser.add_argument("--datasets", nargs="+", metavar="NAME", default=[], help="only these")
    parser.add_argument("--csv", type=Path, help="table: your own, its last column is the class")
    parser.add_argument("--data-dir", type=Path, help="where downloaded data is")
    parser.add_argument("--dask", metavar="ADDRESS", help="a Dask cluster; pip install distributed")
    o = parser.parse_args(argv)
    if o.command is None:
        print(listing())
        sys.exit(0)
    for name in ("runs", "steps", "jobs"):
        if getattr(o, name) is not None and getattr(o, name) < 1:
            parser.error(f"--{name}: expected at least 1, got {getattr(o, name)}")
    o.algorithms = chosen(parser, "--algorithms", o.algorithms, ALGORITHMS) or list(ALGORITHMS)
    known = dict.fromkeys([*paper.TABLE, *datasets.SOURCES])
    o.datasets = chosen(parser, "--datasets", o.datasets, known)
    if o.csv and o.command != "table":
        parser.error("--csv: expected only with the command table")
    folder = "quick" if o.quick else "own" if o.csv or o.datasets else ""
    o.out = o.out or HERE / "figures" / folder
    return o


def listing():
    """All commands, on a screen."""
    lines = [f"  {name:12} {what} ({minutes} min)" for name, (_, what, minutes) in COMMANDS.items()]
    return "\n".join([
        __doc__, "commands (minutes on two cores):", *lines, "",
        "as in: python experiments.py table --datasets statlog,adult --runs 5; options: --help"])


def chosen(parser, option, words, known):
    """The names in words, which may be separated by spaces or commas, in the order of `known`."""
    names = [name for word in words for name in word.split(",") if name]
    for name in names:
        if name not in known:
            parser.error(f"{option}: expected some of {', '.join(known)}, got {name}")
    return [name for name in known if name in names]


def main(argv=None):
    """Run one command."""
    o = parse(argv)
    module, function = COMMANDS[o.command][0].split(":")
    try:
        report = getattr(importlib.import_module(module), function)(o)
        if report is not None:
            report.save(o)
    except datasets.DataError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
