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
from checks.runner import Limits
from checks.testing import Setting, Test, Unloadable, roots_of, run_tests

HERE = Path(__file__).resolve().parent
SAVED = json.loads((HERE / "checks" / "tests.json").read_text(encoding="utf-8"))


def filled(text):
    """A text of nlts.py with the released solutions in its blanks."""
    for path in sorted((HERE / "solutions").glob("*.py")):
        text = source.fill(text, path.read_text(encoding="utf-8"))
    return text


@cache
def outcomes(marker):
    """[(title, None or words)] of the tests of one function."""
    part = SAVED["parts"][marker]
    tests = [Test(*test) for test in part["tests"]]
    text = filled((HERE / "checks" / "given.txt").read_text(encoding="utf-8"))
    blanks = [name for name, node in source.definitions(text).items() if source.is_blank(node)]
    own = tuple({part["function"], *blanks})
    setting = Setting(text, own, roots_of(part["function"], tests), Limits(SAVED["seconds"]))
    files = {path.name: path.read_bytes() for path in HERE.iterdir() if path.is_file()}
    student = (HERE / "nlts.py").read_text(encoding="utf-8-sig")
    log = []
    found = run_tests(tests, lambda: setting.start(files, "nlts.py", student), log)
    print("".join(log)[:2000], end="")
    return found


def fill():
    """Put released solutions into the blanks of nlts.py."""
    text = (HERE / "nlts.py").read_text(encoding="utf-8-sig")
    (HERE / "nlts.py").write_text(filled(text), encoding="utf-8")


def compete():
    """Play the arena with nlts.py as it is, released solutions filled in."""
    from checks import arena
    problems, baselines = arena.saved(HERE / "checks" / "arena.npz")
    nlts = source.load(filled((HERE / "nlts.py").read_text(encoding="utf-8-sig")), "nlts")
    sums = arena.earned(nlts, nlts.better_prior, problems)
    for name, share in arena.won_back(sums, baselines).items():
        paper = arena.won_back({name: baselines[name]["paper"]}, {name: baselines[name]})[name]
        print(f"{name}: won back {share:.0%}; the paper's prior {paper:.0%}")


def main(markers):
    """Tell what is right and what is wrong; 0 if all is right."""
    wrong = 0
    for marker in markers or SAVED["parts"]:
        if marker not in SAVED["parts"]:
            sys.exit(f"{marker}: expected one of {', '.join(SAVED['parts'])}")
        print(SAVED["parts"][marker]["function"])
        try:
            found = outcomes(marker)
        except Unloadable as error:
            sys.exit(str(error))
        for title, words in found:
            wrong += words is not None
            print(f"  right  {title}" if words is None else f"  WRONG  {title}\n         {words}")
    print("All right." if not wrong else f"{wrong} to go.")
    return int(wrong > 0)


if __name__ == "__main__":
    commands = {"--fill": fill, "--arena": compete}
    if sys.argv[1:2] and sys.argv[1] in commands:
        commands[sys.argv[1]]()
    else:
        sys.exit(main(sys.argv[1:]))
