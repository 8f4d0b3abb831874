"""Handouts, bug hunts and grading.

    python -m classroom                              list assignments and bug hunts
    python -m classroom make blr --out DIR           the folder of an assignment or a bug hunt
    python -m classroom grade blr CLASS --out FOLDER

CLASS is a folder with one folder, zip or file per student.
"""
import argparse
import secrets
import sys
from pathlib import Path

from . import handout, reports, submissions
from .catalogue import ALL, ASSIGNMENTS, BUGS
from .contest import ContestGrader
from .grading import Grader
from .hunting import HuntGrader
from .sandbox import Broken, bubblewrap_works
from .submissions import printable

WARNING = ("warning: no bubblewrap, so students' code runs as a plain process of yours. It can "
           "read and change your files, use your network, start processes that outlive the "
           "grading, and read the solutions. For your own students' honest work only. "
           "Install bubblewrap (Linux; Debian: apt install bubblewrap) for everything else.")


def grade(options):
    """Grade and write everything to a folder."""
    sandbox = "bwrap" if bubblewrap_works() else "none"
    if sandbox == "none":
        print(WARNING, file=sys.stderr)
    if options.manifest:
        rows = submissions.read_manifest(options.manifest)
    else:
        rows = submissions.manifest_of(options.folder)
    functions = [part.function for part in ALL[options.name]["parts"]]
    handed_in = submissions.read_all(rows, functions)
    for one in handed_in:
        print(printable(f"{one.id}: {one.main or 'no program'} ({one.why})"))
    seed = secrets.randbits(63) if options.seed is None else options.seed
    kinds = dict.fromkeys(BUGS, HuntGrader) | {"prior": ContestGrader}
    grader = kinds.get(options.name, Grader)(options.name, seed, sandbox)
    grader.try_out()
    results = grader.grade_all(handed_in)
    reports.write_all(Path(options.out), grader, results, seed)
    full = sum(one.points == grader.points for one in results)
    flagged = sum(bool(one.flags) for one in results)
    print(f"{full} of {len(results)} with full marks, {flagged} to look at in grades.csv; "
          f"sandbox {sandbox}. See {options.out}")


def show():
    """List everything."""
    for name, a in ASSIGNMENTS.items():
        print(f"{name:<11}{a['hours']:>4g} h {10 * a['hours']:>4g} points  {a['goal']}")
    print("\nBug hunts, 10 points each:")
    for name, bug in BUGS.items():
        print(f"{name:<26}{bug['function']:<34}{bug['symptom']}")


def parser_of():
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m classroom", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    make = commands.add_parser("make")
    make.add_argument("name", choices=list(ALL))
    make.add_argument("--out", required=True, help="a folder that is not there yet or empty")
    grade = commands.add_parser("grade")
    grade.add_argument("name", choices=list(ALL))
    who = grade.add_mutually_exclusive_group(required=True)
    who.add_argument("folder", nargs="?", metavar="CLASS")
    who.add_argument("--manifest", metavar="FILE", help="manifest.csv of a run before, corrected")
    grade.add_argument("--out", required=True, help="the folder for grades.csv and reports")
    grade.add_argument("--seed", type=int, help="of the tests; drawn, and in seed.txt")
    return parser


def main(arguments=None):
    """Run a command."""
    parser = parser_of()
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")            # whatever a terminal cannot show
    try:
        if options.command == "grade":
            grade(options)
        elif options.command == "make":
            handout.write(Path(options.out), options.name)
        else:
            show()
    except (OSError, ValueError, Broken) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
