"""Every figure and table of the paper is one command; `python experiments.py` lists them.

A command measures, tells what it found beside what the paper says, and draws. It writes its words,
its numbers and its picture into figures/. Runs that are finished are never played again.
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
from lab import paper, verdicts  # noqa: E402
from lab.agents import ALGORITHMS  # noqa: E402
from lab.runs import HERE, execute, make_task, present, steps_of  # noqa: E402
from lab.text import Report, rough  # noqa: E402

COMMANDS = {  # name: (where it is, what it shows, minutes on two cores)
    "forgetting": ("experiments:forgetting", "Sec. 4.1: regret around each retraining", "2"),
    "table": ("experiments:table", "Sec. 4.2: real data, two kinds of forgetting", "120"),
    "amazon": ("experiments:amazon", "Sec. 4.3: text, Thompson sampling and ε-greedy", "60"),
    "wheel": ("experiments:wheel", "Appendix B: the wheel", "30"),
    "sanity": ("lab.sanity:sanity", "Appendix C in numbers, and where its assumptions end", "1"),
    "drift": ("experiments:drift", "ours: contexts that drift away from the buffer", "15"),
    "exploration": ("experiments:exploration", "ours: why limited memory can beat full", "15"),
    "complexity": ("lab.complexity:complexity", "Sec. 3.1 measured", "2"),
    "matching": ("lab.matching:matching", "Eq. 6: solvers compared", "15"),
    "calibration": ("lab.calibration:calibration", "ours: how certain each prior is", "10"),
    "ablation": ("lab.ablation:ablation", "ours: what each open choice is worth", "45"),
    "speed": ("lab.speed:speed", "ours: what a step and a phase cost", "1"),
    "picture": ("lab.picture:picture", "the picture of README.md", "1"),
    "results": ("lab.pages:results", "figures/README.md and the numbers in README.md", "0"),
}


# Sec. 4.1: catastrophic forgetting ----------------------------------------------------------------

def forgetting(o):
    """Figure 1: regret on Statlog around each retraining."""
    from lab import drawings  # here and below, not above: matplotlib is slow to import
    regret = measure_forgetting(o)
    return Report(verdicts.forgetting(regret, nlts.Config.L) + rough(o),
                  figures={"forgetting": drawings.forgetting(regret, nlts.Config.L)})


def measure_forgetting(o):
    """The regret of each step: {algorithm: (runs, steps)}."""
    steps = o.steps or (1200 if o.quick else 4000)
    runs = o.runs or (2 if o.quick else 10)
    tasks = [make_task(o, "forgetting", "statlog", name, steps, trace=True)
             for name in o.algorithms]
    lines = execute(o, "forgetting", tasks, runs)
    return {name: np.array([line["regret"] for line in lines if line["algorithm"] == name])
            for name in o.algorithms}


# Sec. 4.2: real world data ------------------------------------------------------------------------

def table(o):
    """Table 1, two kinds of forgetting, and a verdict on every claim."""
    lines = measure_table(o)
    rewards = verdicts.by_dataset(lines)
    rows = {d: len(datasets.table(datasets.SOURCES[d], o.data_dir).y)
            for d in paper.COMPLETE if d in rewards}
    report = Report(verdicts.table(lines, rewards, rows) + rough(o))
    if verdicts.complete(rewards):
        from lab import drawings
        report.figures["kinds"] = drawings.kinds(rewards)
    return report


def measure_table(o):
    """The lines of results of all data sets that are there, or of the user's own table."""
    runs = o.runs or (2 if o.quick else paper.RUNS)
    sets = o.datasets or (["statlog"] if o.quick else list(paper.TABLE))
    sets = [str(o.csv)] if o.csv else present(o, sets)
    tasks = []
    for dataset in sets:
        steps = steps_of(o, dataset)
        tasks += [make_task(o, "table", dataset, name, steps, csv=o.csv) for name in o.algorithms]
    return execute(o, "table", tasks, runs)


# Sec. 4.3: text -----------------------------------------------------------------------------------

def amazon(o):
    """Table 2: a text network on Amazon reviews, Thompson sampling and ε-greedy."""
    lines = measure_amazon(o)
    rewards = verdicts.by_dataset(lines)["amazon"]
    ratings = datasets.table(datasets.SOURCES["amazon"], o.data_dir).y
    commonest = np.bincount(ratings).max() / len(ratings)
    text = verdicts.amazon(rewards, lines[0]["steps"], commonest, len(ratings))
    return Report(text + rough(o))


def measure_amazon(o):
    """Rewards on Amazon reviews."""
    present(o, ["amazon"])
    steps, runs = steps_of(o, "amazon", quick=450), o.runs or (1 if o.quick else 5)
    hyper = {"P": 5} if o.quick else {}
    names = [name for name in ("neural-linear", "both-priors", "carried") if name in o.algorithms]
    names += ["ε=0.1"] if o.quick else ["ε=0.1", "ε=0.2", "ε=0.3"]
    tasks = [make_task(o, "amazon", "amazon", name, steps, **hyper) for name in names]
    return execute(o, "amazon", tasks, runs)


# Appendix B: the wheel ----------------------------------------------------------------------------

WHEEL = [  # name in the results, algorithm, hyperparameters, variant of it in lab/ablation.py
    ("linear", "linear", {}, None),
    ("neural-linear", "neural-linear", {}, None),
    ("both-priors", "both-priors", {}, None),
    ("carried", "carried", {}, None),
    ("b⁰ = 0.06", "both-priors", {"b0": 0.06}, None),    # expects the noise that there is
    ("twice", "both-priors", {}, "both-priors, counted twice in Φ⁰"),
    ("both", "both-priors", {"b0": 0.06}, "both-priors, counted twice in Φ⁰"),
]
WHEEL_PHASES = {"L": 200, "P": 400}


def wheel(o):
    """Table 3: the wheel bandit, and a picture of what was learned."""
    from lab import drawings
    lines = measure_wheel(o)
    steps = lines[0]["steps"]
    optimum = {line["dataset"]: line["optimal"] for line in lines}
    text = verdicts.wheel(verdicts.by_dataset(lines), optimum, steps)
    task = make_task(o, "wheel", "wheel 0.5", "both-priors", steps, **WHEEL_PHASES)
    linear = make_task(o, "wheel", "wheel 0.5", "linear", steps)
    return Report(text + rough(o), figures={"wheel": drawings.wheel(linear, task)})


def measure_wheel(o):
    """Rewards on the wheel for three sizes of the inner circle."""
    steps, runs = o.steps or (1000 if o.quick else 4000), o.runs or (2 if o.quick else 50)
    tasks = []
    for delta in paper.WHEEL:
        for name, algorithm, hyper, variant in WHEEL:
            if algorithm in o.algorithms:
                module = "lab.ablation" if variant else "lab.agents"
                tasks.append(make_task(o, "wheel", f"wheel {delta}", name, steps, module=module,
                                       recipe=variant or algorithm, **WHEEL_PHASES | hyper))
    return execute(o, "wheel", tasks, runs)


# Ours: drift, and the noise prior -----------------------------------------------------------------

def drift(o):
    """Contexts that drift, so that the buffer no longer looks like what was forgotten."""
    rewards = verdicts.by_dataset(measure_drift(o))
    report = Report(verdicts.drift(rewards) + rough(o))
    if verdicts.complete(rewards):
        from lab import drawings
        report.figures["drift"] = drawings.kinds(rewards)
    return report


def measure_drift(o):
    """Rewards where rows are ordered along their first principal component, with jitter."""
    runs = o.runs or (2 if o.quick else 20)
    sets = o.datasets or (["statlog"] if o.quick else ["statlog", "covertype", "adult"])
    tasks = [make_task(o, "drift", f"drifting {dataset}", name, steps_of(o, dataset))
             for dataset in present(o, sets) for name in o.algorithms]
    return execute(o, "drift", tasks, runs)


NOISE = 6.0, 0.6, 0.06                                # b0 of Inv-Gamma(6, b0)


def exploration(o):
    """Why the paper's prior can beat full memory: a noise prior that is too wide."""
    from lab import drawings
    rewards = verdicts.by_dataset(measure_exploration(o))
    return Report(verdicts.exploration(rewards, NOISE) + rough(o),
                  figures={"exploration": drawings.exploration(rewards, NOISE)})


def measure_exploration(o):
    """Rewards with three noise priors."""
    runs = o.runs or (2 if o.quick else 10)
    sets = o.datasets or (["statlog"] if o.quick else ["statlog", "census", "mushroom", "adult"])
    names = [name for name in verdicts.EXPLORED if name in o.algorithms]
    tasks = [make_task(o, "exploration", dataset, verdicts.with_noise(name, b0),
                       steps_of(o, dataset), recipe=name, b0=b0)
             for dataset in present(o, sets) for name in names for b0 in NOISE]
    return execute(o, "exploration", tasks, runs)


# The command line ---------------------------------------------------------------------------------

def parse(argv):
    """The command line as a namespace."""
    listing = [f"  {name:12} {what} ({minutes} min)"
               for name, (_, what, minutes) in COMMANDS.items()]
    example = "example: python experiments.py table --datasets statlog,adult --runs 5"
    parser = argparse.ArgumentParser(
        description="The paper's figures and tables, and our own studies.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(["commands (minutes on two cores):", *listing, "", example]))
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="COMMAND", help="see below")
    parser.add_argument("--quick", action="store_true", help="a rough version, in half a minute")
    parser.add_argument("--runs", type=int, help="number of runs (default: as in the paper)")
    parser.add_argument("--steps", type=int, help="steps a run (default: as in the paper)")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other runs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (one a core)")
    parser.add_argument("--out", type=Path, help="folder (figures; with --quick figures/quick)")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", default=[],
                        help="only these of " + ", ".join(ALGORITHMS))
    parser.add_argument("--datasets", nargs="+", metavar="NAME", default=[],
                        help="only these; python datasets.py lists them")
    parser.add_argument("--csv", type=Path, help="table: your own, its last column is the class")
    parser.add_argument("--data-dir", type=Path, help="where downloaded data is")
    parser.add_argument("--dask", metavar="ADDRESS", help="play the runs on a Dask cluster")
    o = parser.parse_args(argv)
    if o.command is None:
        print(f"{__doc__.strip()}\n\n{parser.epilog}\nall options: python experiments.py --help")
        sys.exit(0)
    for name in ("runs", "steps", "jobs"):
        if getattr(o, name) is not None and getattr(o, name) < 1:
            parser.error(f"--{name}: expected at least 1, got {getattr(o, name)}")
    o.algorithms = chosen(parser, "--algorithms", o.algorithms, ALGORITHMS) or list(ALGORITHMS)
    o.datasets = chosen(parser, "--datasets", o.datasets, paper.TABLE)
    o.out = o.out or HERE / "figures" / ("quick" if o.quick else "")
    return o


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
    command = globals()[function] if module == "experiments" else getattr(
        importlib.import_module(module), function)
    try:
        report = command(o)
        if report is not None:
            report.save(o)
    except datasets.DataError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
