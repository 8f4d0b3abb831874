"""Handouts, bug hunts and grading.

    python -m classroom                              list assignments and bug hunts
    python -m classroom make blr --out DIR           the folder of an assignment
    python -m classroom release blr --out DIR        its solutions, for students' folder solutions/
    python -m classroom rubric invertible            model answers and rubric, for the teacher only
    python -m classroom bug squared-nu --out DIR     the folder of a bug hunt
    python -m classroom grade blr SUBMISSION ... --out FOLDER
    python -m classroom total FOLDER                 add the points of FOLDER/rubric.csv
    python -m classroom gradescope blr --out DIR     what Gradescope's autograder wants
"""
import argparse
import os
import secrets
import sys
from pathlib import Path

from . import handout, reports, submissions
from .catalogue import ALL, ASSIGNMENTS, BUGS, program, read_text
from .contest import ContestGrader
from .grading import Grader
from .hunting import HuntGrader
from .sandbox import best_sandbox, bubblewrap_works, dropping_rights_works
from .testing import Unloadable

WARNING = ("warning: no bubblewrap, so students' code runs as a plain process of yours: it can "
           "read and change your files, and read the solutions in them. For your own students' "
           "honest work only. Install it (Debian: bubblewrap) for everything else.")
MAKERS = {                                       # command: its names, and the files that it writes
    "make": (ASSIGNMENTS, handout.assignment),
    "release": (ASSIGNMENTS, lambda name: {f"{name}.py": program(name, [name])}),
    "bug": (BUGS, handout.hunt),
    "gradescope": (ALL, handout.gradescope),
}


def grader_of(o, seed, sandbox):
    kinds = dict.fromkeys(BUGS, HuntGrader) | {"prior": ContestGrader}
    return kinds.get(o.name, Grader)(o.name, seed, sandbox, o.borrowed)


def grade(o):
    """Grade and write everything to a folder; 0 if all have full marks."""
    sandbox = o.sandbox or best_sandbox()
    if o.sandbox == "bwrap" and not bubblewrap_works():
        raise ValueError("--sandbox: bubblewrap is not installed, or may not make namespaces here")
    if o.sandbox == "user" and not dropping_rights_works():
        raise ValueError("--sandbox: user needs root, a Python that others may run, and a folder "
                         "of this project that others cannot enter")
    if sandbox == "none":
        print(WARNING, file=sys.stderr)
    seed = secrets.randbits(63) if o.seed is None else o.seed
    roster = reports.read_table(o.roster) if o.roster else []
    handed_in = submissions.read_all(o.submissions, o.single)
    grader = grader_of(o, seed, sandbox)
    grader.try_out()
    results = grader.grade_all(handed_in, o.jobs)
    if o.several != "all":
        results = submissions.chosen(results, o.several)
    flagged = reports.write_all(Path(o.out), grader, results, seed, roster)
    full = sum(one.points == grader.points for one in results)
    print(f"{full} of {len(results)} with full marks, {len(flagged)} to look at in flags.csv; "
          f"sandbox {sandbox}. See {o.out}")
    return int(full < len(results))


def show():
    """What there is."""
    for name, a in ASSIGNMENTS.items():
        print(f"{name:<11}{a['hours']:>4g} h {10 * a['hours']:>4g} points  {a['goal']}")
    print("\nBug hunts, 10 points each:")
    for name, bug in BUGS.items():
        print(f"{name:<26}{bug['function']:<34}{bug['symptom']}")


def share(text):
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("expected a share from 0 to 1")
    return value


def grading_options(sub):
    sub.add_argument("name", choices=list(ALL))
    sub.add_argument("submissions", nargs="+", help="files, folders, zips, notebooks, or a class")
    sub.add_argument("--out", required=True, help="the folder for grades.csv and reports")
    sub.add_argument("--single", action="store_true", help="each path is one submission")
    sub.add_argument("--several", choices=("all", "best", "last"), default="all",
                     help="which of several submissions of one student counts")
    sub.add_argument("--roster", help="a CSV file: the first column is in submissions' names, "
                                      "all columns are put into grades.csv")
    sub.add_argument("--borrowed", type=share, default=1.0, metavar="SHARE",
                     help="of the points of a test that passes among our versions only; default 1")
    sub.add_argument("--sandbox", choices=("bwrap", "user", "none"), help="by default the best")
    sub.add_argument("--seed", type=int, help="of the tests; drawn, and in seed.txt, if not given")
    sub.add_argument("--jobs", type=int, default=os.cpu_count(), help="submissions at a time")


def parser_of():
    parser = argparse.ArgumentParser(prog="python -m classroom", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    for command, (names, _) in MAKERS.items():
        sub = commands.add_parser(command)
        sub.add_argument("name", choices=list(names))
        sub.add_argument("--out", required=True, help="a folder that is not there yet or empty")
    commands.add_parser("rubric").add_argument("name", choices=list(ASSIGNMENTS))
    commands.add_parser("total").add_argument("folder", help="where grade has written")
    grading_options(commands.add_parser("grade"))
    return parser


def main(arguments=None):
    parser = parser_of()
    o = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")            # whatever a terminal cannot show
    try:
        if o.command is None:
            show()
        elif o.command == "grade":
            return grade(o)
        elif o.command == "total":
            reports.write_totals(Path(o.folder))
        elif o.command == "rubric":
            print(read_text("rubrics", f"{o.name}.md"))
        else:
            handout.write(Path(o.out), MAKERS[o.command][1], o.name)
            print(f"wrote {o.out}")
    except (OSError, ValueError, Unloadable) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
