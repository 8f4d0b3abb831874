"""Check your nlts.py: what the grader will run, on other cases, with the same limits.

    python check.py                  every function of this assignment
    python check.py blr_update       one function, or several
    python check.py --fill           put released solutions of other parts into their blanks
    python check.py --arena          assignment `prior`: what yours wins back, in some minutes
"""
import json
import sys
from functools import cache
from pathlib import Path

from checks import source
from checks.sandbox import Limits
from checks.testing import Code, Unloadable, run_tests
from checks.worker import decode, load

HERE = Path(__file__).resolve().parent
SKIPPED = ("checks", "solutions", ".git", ".venv", "venv", "__pycache__", ".pytest_cache")
SAVED = json.loads((HERE / "checks" / "tests.json").read_text(encoding="utf-8"))


def filled(*path):
    """A text of nlts.py with the released solutions in its blanks."""
    text = HERE.joinpath(*path).read_text(encoding="utf-8-sig")
    for solution in sorted((HERE / "solutions").glob("*.py")):
        text = source.fill(text, solution.read_text(encoding="utf-8"))
    return text


@cache
def outcomes(marker):
    """[(title, None or words)] of the tests of one function."""
    function, tests = SAVED["tests"][marker]
    files = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in HERE.rglob("*")
             if path.is_file() and path.relative_to(HERE).parts[0] not in SKIPPED}
    student = (HERE / "nlts.py").read_text(encoding="utf-8-sig")
    given = source.blank(filled("checks", "given.txt"), [function])
    return run_tests(tests, Code(student, given, files,
                                 limits=Limits(SAVED["seconds"], output=None)))


def pytest_generate_tests(metafunc):
    """The tests for pytest, with a marker for each function: python -m pytest -m MARKER."""
    import pytest
    metafunc.parametrize("marker, i", [
        pytest.param(marker, i, marks=getattr(pytest.mark, marker))
        for marker, (_, tests) in SAVED["tests"].items() for i in range(len(tests))])


def test_step(marker, i):
    _, words = outcomes(marker)[i]
    assert words is None, words


def compete():
    """Play the arena with nlts.py as it is, released solutions filled in."""
    from checks import arena
    text = (HERE / "checks" / "arena.json").read_text(encoding="utf-8")
    problems, baselines = decode(json.loads(text))
    nlts = load(filled("nlts.py"), "nlts")
    paper = arena.won_back(baselines["paper"], baselines)
    sums = arena.earned(nlts, problems, prior=nlts.better_prior)
    for name, share in arena.won_back(sums, baselines).items():
        print(f"{name}: won back {share:.0%}; the paper's prior {paper[name]:.0%}")


def main(markers):
    """Tell what is right and what is wrong; 0 if all is right."""
    wrong = 0
    for marker in markers or SAVED["tests"]:
        if marker not in SAVED["tests"]:
            sys.exit(f"{marker}: expected one of {', '.join(SAVED['tests'])}")
        print(SAVED["tests"][marker][0], flush=True)
        for title, words in outcomes(marker):
            wrong += words is not None
            print(f"  right  {title}" if words is None else f"  WRONG  {title}\n         {words}")
    print(f"{wrong} to go." if wrong else "All right.")
    return int(wrong > 0)


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["--fill"]:
            (HERE / "nlts.py").write_text(filled("nlts.py"), encoding="utf-8")
        elif sys.argv[1:] == ["--arena"]:
            compete()
        else:
            sys.exit(main(sys.argv[1:]))
    except Unloadable as error:
        sys.exit(str(error))
