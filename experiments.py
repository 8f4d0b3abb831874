"""Every figure and table of the paper, and of ours, is one command: python experiments.py COMMAND

A command measures, reports and plots: three functions of one file in studies/. Words, numbers and
pictures go to figures/own. Runs that are on file there are not played again, unless code or data
has changed. As in: python experiments.py table --datasets statlog,adult --runs 5
"""
import importlib
import os
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

from lab import kernels  # noqa: F401, before NumPy: the same kernels everywhere
from lab.options import Command, parse
from lab.paper import ALGORITHMS as PAPERS
from lab.paper import TABLE, WHEEL

SOURCES = Path(__file__).resolve().parent / "data/sources.toml"
SETS = tuple(TABLE)
WHEELS = tuple(WHEEL)
EVERYBODY = (*PAPERS, "printed", "carried", "greedy", "greedy-full", "perfect-prior")
CHOICES = {"algorithms": EVERYBODY,
           "datasets": tuple(name for name in tomllib.loads(SOURCES.read_text(encoding="utf-8"))
                             if name != "amazon")}    # texts have a command of their own
OWN = {"prior": None, "noise": None}

COMMANDS = {
    # the paper's
    "forgetting": Command(
        "Sec. 4.1, Figure 2: regret around each retraining", 3, "studies.forgetting",
        {"runs": 10, "steps": 4000, "algorithms": (*PAPERS, "carried"), **OWN}, CHOICES),
    "table": Command(
        "Sec. 4.2, Table 1: real data, at the paper's settings", 120, "studies.table",
        {"runs": 50, "steps": 5000, "datasets": SETS, "algorithms": (*PAPERS, "printed"),
         "csv": None, **OWN}, CHOICES),
    "depth": Command(
        "Sec. 4.2, last paragraph: a deeper network", 20, "studies.depth",
        {"runs": 5, "steps": 5000, "datasets": ("covertype", "adult")}),
    "amazon": Command(
        "Sec. 4.3: text, Thompson sampling and ε-greedy", 115, "studies.amazon",
        {"runs": 5, "steps": 5000}),
    "wheel": Command(
        "Appendix B, Table 2: the wheel", 20, "studies.wheel",
        {"runs": 50, "steps": 4000, "datasets": WHEELS, **OWN}),
    "sanity": Command(
        "Appendix C in numbers, and where its assumptions end", 1, "studies.sanity", {"runs": 20},
        plays=False),
    "costs": Command(
        "Sec. 3.1 measured: time and memory, solvers of Eq. 6, a step", 1, "studies.costs",
        {"runs": 3, "data_dir": None}, plays=False),
    "released": Command(
        "the paper's table as the released program plays it", 75, "studies.released",
        {"runs": 10, "steps": 5000, "datasets": SETS, "algorithms": PAPERS}),
    # ours
    "equal": Command(
        "everybody at the same settings; two kinds of forgetting", 180, "studies.equal",
        {"runs": 50, "steps": 5000, "datasets": SETS, "algorithms": EVERYBODY, "csv": None,
         "drift": False, **OWN}, CHOICES),
    "peers": Command(
        "LiM2, NeuralTS and greedy networks at equal settings", 140, "studies.peers",
        {"runs": 20, "steps": 5000, "datasets": (*SETS, "wheel-0.5")}),
    "exploration": Command(
        "why limited memory wins on some data sets: the noise", 45, "studies.exploration",
        {"runs": 10, "steps": 5000,
         "datasets": ("statlog", "census", "mushroom", "adult", "financial", "jester",
                      "smartphones", "wheel-0.5")}),
    "calibration": Command(
        "how certain each prior is", 20, "studies.calibration",
        {"runs": 10, "steps": 5000, "datasets": SETS}),
    "ablation": Command(
        "what each open choice is worth", 60, "studies.ablation",
        {"runs": 10, "steps": 5000,
         "datasets": ("statlog", "mushroom", "adult", "epileptic")}),
    # pages
    "film": Command("docs/forgetting.html: ten learning phases, with a slider", 3, "docs.film",
                    plays=False),
    "results": Command("figures/README.md and the numbers in README.md", 0, "lab.pages",
                       plays=False),
}


def main(argv=None):
    """Run one command."""
    options = parse(argv, __doc__, COMMANDS)
    if options is None:
        return
    if options.data_dir:
        os.environ["NLTS_DATA"] = str(options.data_dir.resolve())    # worker processes see it
    from lab import report  # slow to import, as studies are
    from lab.files import DataError
    study = importlib.import_module(COMMANDS[options.command].study)
    if options.drift:
        options = replace(options, command=f"{options.command}-drift")   # files of its own
    try:
        measured = study.measure(options)
    except DataError as error:
        sys.exit(str(error))
    report.save(options, study, measured)


if __name__ == "__main__":
    main()
