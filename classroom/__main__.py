"""The classroom, from the command line.

    python -m classroom                              list assignments and bug hunts
    python -m classroom make blr --out DIR           the folder of an assignment
    python -m classroom release blr --out DIR        its solutions, for students' folder solutions/
    python -m classroom rubric invertible            model answers and rubric, for the teacher only
    python -m classroom bug squared-nu --out DIR     the folder of a bug hunt
    python -m classroom grade blr SUBMISSION ... --out FOLDER
    python -m classroom gradescope blr --out DIR     what Gradescope's autograder wants
"""
import argparse
import os
import secrets
import sys
from pathlib import Path

from . import handout, reports, submissions
from .catalogue import ALL, ASSIGNMENTS, BUGS, program, read_text
from .grading import ContestGrader, Grader, HuntGrader
from .sandbox import bubblewrap_works
from .testing import Unloadable

WARNING = ("warning: no bubblewrap, so students' code runs as a plain process of yours: it can "
           "read and change your files. For strangers' code install it (Debian: bubblewrap).")
MAKERS = {                                       # command: its names, and the files that it writes
    "make": (ASSIGNMENTS, handout.assignment),
    "release": (ASSIGNMENTS, lambda name: {f"{name}.py": program(name, [name])}),
    "bug": (BUGS, handout.hunt),
    "gradescope": (ALL, handout.gradescope),
}


def grade(o):
    """Grade and write everything to a folder; 0 if all have full marks."""
    sandbox = o.sandbox or ("bwrap" if bubblewrap_works() else "none")
    if o.sandbox == "bwrap" and not bubblewrap_works():
        raise ValueError("--sandbox: bubblewrap is not installed, or may not make namespaces here")
    if sandbox == "none":
        print(WARNING, file=sys.stderr)
    seed = secrets.randbits(31) if o.seed is None else o.seed
    kinds = dict.fromkeys(BUGS, HuntGrader) | {"prior": ContestGrader}
    grader = kinds.get(o.name, Grader)(o.name, seed, sandbox)
    grader.try_out()
    results = grader.grade_all(submissions.read_all(o.submissions), o.jobs)
    alike = reports.write_all(Path(o.out), o.name, grader, results, seed)
    full = sum(one.points == grader.points for one in results)
    print(f"{full} of {len(results)} with full marks, {len(alike)} pairs alike; seed {seed}, "
          f"sandbox {sandbox}. See {o.out}")
    return int(full < len(results))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m classroom", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    for command, (names, _) in MAKERS.items():
        sub = commands.add_parser(command)
        sub.add_argument("name", choices=list(names))
        sub.add_argument("--out", required=True, help="a folder that is not there yet or empty")
    commands.add_parser("rubric").add_argument("name", choices=list(ASSIGNMENTS))
    sub = commands.add_parser("grade")
    sub.add_argument("name", choices=list(ALL))
    sub.add_argument("submissions", nargs="+", help="files, folders, zips or notebooks")
    sub.add_argument("--out", required=True, help="the folder for grades.csv and reports")
    sub.add_argument("--sandbox", choices=("bwrap", "none"), help="by default bwrap where it works")
    sub.add_argument("--seed", type=int, help="of the tests; drawn, and told, if not given")
    sub.add_argument("--jobs", type=int, default=os.cpu_count(), help="submissions at a time")
    o = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")            # whatever a terminal cannot show
    try:
        if o.command is None:
            for name, a in ASSIGNMENTS.items():
                print(f"{name:<11}{a['hours']:>4g} h {10 * a['hours']:>4g} points  {a['goal']}")
            print("\nBug hunts, 10 points each:")
            for name, bug in BUGS.items():
                print(f"{name:<26}{bug['function']:<34}{bug['symptom']}")
        elif o.command == "grade":
            return grade(o)
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
