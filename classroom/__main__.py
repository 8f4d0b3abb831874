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

from . import handout, hunts, reports, source, submissions
from .catalogue import ASSIGNMENTS
from .grading import assignment_grader
from .sandbox import bubblewrap_works
from .testing import Unloadable

WARNING = ("warning: no bubblewrap, so students' code runs as a plain process of yours: it can "
           "read and change your files. For strangers' code install it (Debian: bubblewrap).")
ALL = [*ASSIGNMENTS, *hunts.BUGS]


def list_all():
    """Tell what there is."""
    for name, a in ASSIGNMENTS.items():
        print(f"{name:<11}{a.hours:>4g} h {10 * a.hours:>4g} points  {a.goal}")
    print("\nBug hunts, 10 points each:")
    for name, bug in hunts.BUGS.items():
        print(f"{name:<26}{bug['function']:<34}{bug['symptom']}")


def make_grader(name, seed, sandbox):
    """The grader of an assignment or a hunt."""
    if name in hunts.BUGS:
        return hunts.HuntGrader(name, seed, sandbox)
    if name != "prior":
        return assignment_grader(name, seed, sandbox)
    from .contest import ContestGrader  # needs data
    return assignment_grader(name, seed, sandbox, kind=ContestGrader)


def grade(o):
    """Grade and write everything to a folder; 0 if all have full marks."""
    sandbox = o.sandbox or ("bwrap" if bubblewrap_works() else "none")
    if o.sandbox == "bwrap" and not bubblewrap_works():
        raise ValueError("--sandbox: bubblewrap is not installed, or may not make namespaces here")
    if sandbox == "none":
        print(WARNING, file=sys.stderr)
    seed = secrets.randbits(31) if o.seed is None else o.seed
    grader = make_grader(o.name, seed, sandbox)
    grader.try_out()
    handed_in = submissions.read_all(o.submissions)
    results = grader.grade_all(handed_in, o.jobs)
    out = Path(o.out)
    reports.write_all(out, o.name, grader, results, seed)
    given = hunts.with_bug(o.name) if o.name in hunts.BUGS else handout.sealed(o.name)
    alike = reports.similarity(handed_in, given)
    reports.write_table(out / "similarity.csv", ("share", "submission", "other"), *alike)
    full = sum(result.points == grader.points for result in results)
    print(f"{full} of {len(results)} with full marks, {len(alike)} pairs alike; seed {seed}, "
          f"sandbox {sandbox}. See {out}")
    return int(full < len(results))


def gradescope(name, out):
    """setup.sh, run_autograder and requirements.txt, with all that they use: zip the folder."""
    wanted = [*source.ROOT.glob("*.py"), source.ROOT / "requirements.txt"]
    for folder in ("classroom", "lab"):
        wanted += [path for path in (source.ROOT / folder).rglob("*.*") if path.suffix != ".pyc"]
    files = {path.relative_to(source.ROOT).as_posix(): path.read_text(encoding="utf-8")
             for path in wanted}
    files["setup.sh"] = source.read_text("student", "setup.sh")
    files["run_autograder"] = source.read_text("student", "run_autograder.sh").format(name=name)
    folder = handout.new_folder(out, files)
    (folder / "run_autograder").chmod(0o755)
    return folder


MAKERS = {                                       # command: its names, and what it writes
    "make": (ASSIGNMENTS, lambda o: handout.make(o.name, o.out)),
    "release": (ASSIGNMENTS, lambda o: handout.new_folder(
        o.out, {f"{o.name}.py": handout.solution(o.name)})),
    "bug": (hunts.BUGS, lambda o: hunts.make_hunt(o.name, o.out)),
    "gradescope": (ALL, lambda o: gradescope(o.name, o.out)),
}


def parse(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m classroom", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    for command, (names, _) in MAKERS.items():
        sub = commands.add_parser(command)
        sub.add_argument("name", choices=list(names))
        sub.add_argument("--out", required=True, help="a folder that is not there yet or empty")
    commands.add_parser("rubric").add_argument("name", choices=list(ASSIGNMENTS))
    sub = commands.add_parser("grade")
    sub.add_argument("name", choices=ALL)
    sub.add_argument("submissions", nargs="+", help="files, folders, zips or notebooks")
    sub.add_argument("--out", required=True, help="the folder for grades.csv and reports")
    sub.add_argument("--sandbox", choices=("bwrap", "none"), help="by default bwrap where it works")
    sub.add_argument("--seed", type=int, help="of the tests; drawn, and told, if not given")
    sub.add_argument("--jobs", type=int, default=os.cpu_count(), help="submissions at a time")
    return parser, parser.parse_args(arguments)


def main(arguments=None):
    parser, o = parse(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")            # whatever a terminal cannot show
    try:
        if o.command is None:
            list_all()
        elif o.command == "grade":
            return grade(o)
        elif o.command == "rubric":
            print(source.read_text("rubrics", f"{o.name}.md"))
        else:
            print(f"wrote {MAKERS[o.command][1](o)}")
    except (OSError, ValueError, Unloadable) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
