"""Check your work: what the grader will run, on other cases, with the same limits.

    python check.py                  every function of this assignment
    python check.py blr_update       one function, or several
    python check.py --arena          assignment `prior`: what yours wins back
"""
import json
import sys
from pathlib import Path

from checks.sandbox import Broken, Worker
from checks.testing import run

HERE = Path(__file__).resolve().parent
SAVED = json.loads((HERE / "checks" / "tests.json").read_text(encoding="utf-8"))


def outcomes(tests):
    """[(title, None or the failure)] of the tests of one function."""
    files = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in HERE.rglob("*.py")
             if path.relative_to(HERE).parts[0] not in ("checks", ".venv", "venv")}
    student = (HERE / SAVED["main"]).read_text(encoding="utf-8-sig")
    given = (HERE / "checks" / "given.txt").read_text(encoding="utf-8")
    with Worker(student, given, files, seconds=SAVED["seconds"], output=None) as worker:
        found = run(worker, tests)
        for note in worker.notes:
            print(f"  note: {note}")
        return found


def compete():
    """Play better_prior.py in the arena."""
    from better_prior import better_prior
    from checks import arena

    import nlts
    text = (HERE / "checks" / "arena.json").read_text(encoding="utf-8")
    problems, baselines = json.loads(text)
    paper = arena.won_back(baselines["paper"], baselines)
    sums = arena.earned(nlts, problems, prior=better_prior)
    for name, share in arena.won_back(sums, baselines).items():
        print(f"{name}: won back {share:.0%}; the paper's prior {paper[name]:.0%}")


def main(markers):
    """Tell what is right and what is wrong; 0 if all is right."""
    wrong = 0
    for marker in markers or SAVED["tests"]:
        if marker not in SAVED["tests"]:
            sys.exit(f"{marker}: expected one of {', '.join(SAVED['tests'])}")
        function, tests = SAVED["tests"][marker]
        print(function, flush=True)
        for title, failure in outcomes(tests):
            wrong += failure is not None
            print(f"  {'WRONG' if failure else 'right'}  {title}")
            if failure:
                print(f"         {failure}")
    print(f"{wrong} to go." if wrong else "All right.")
    return int(wrong > 0)


if __name__ == "__main__":
    try:
        sys.exit(compete() if sys.argv[1:] == ["--arena"] else main(sys.argv[1:]))
    except Broken as error:
        sys.exit(str(error))
