"""What there is: the assignments of catalogue.toml, the hunts of hunts.toml, and their programs."""
import ast
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import source

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


@dataclass(frozen=True)
class Part:
    """A function to write. It is graded alone, with the reference in place of all others."""
    function: str
    hours: float
    asks: str = ""
    checked: str = "Checked up to 1e-4 of the largest number."
    optional: bool = False

    @property
    def points(self):
        return round(10 * self.hours, 2)

    @property
    def marker(self):
        """Its short name: on the command line, as a column, and as a marker of pytest."""
        short = self.function.replace("BayesianLinearRegression", "blr").replace(".", "_")
        return short.lower().strip("_")


def read_text(*names):
    """A text file of the classroom."""
    return HERE.joinpath(*names).read_text(encoding="utf-8")


ASSIGNMENTS = tomllib.loads(read_text("catalogue.toml"))
for table in ASSIGNMENTS.values():
    table["parts"] = [Part(**part) for part in table["parts"]]
    table["hours"] = sum(part.hours for part in table["parts"] if not part.optional)
HOME = {part.function: name for name, a in ASSIGNMENTS.items() for part in a["parts"]}
BUGS = tomllib.loads(read_text("hunts.toml"))
for table in BUGS.values():
    experiment = f"symptom_{HOME[table['function']]}"
    table |= {"parts": [Part(table["function"], 0.5)], "seconds": 30, "experiment": experiment}
ALL = ASSIGNMENTS | BUGS


def program(name, written, asks=None):
    """nlts.py and the further functions of an assignment, with those that are written."""
    text = (ROOT / "nlts.py").read_text(encoding="utf-8")
    if (HERE / "student" / f"{name}.py").exists():
        text += "\n\n" + read_text("student", f"{name}.py").partition("\n")[2]
    return source.blank(text, [part for part in HOME if HOME[part] not in written], asks)


@cache
def reference(name):
    """What is graded with: the functions of later assignments are blank. In hunts nothing tells."""
    home = HOME[BUGS[name]["function"]] if name in BUGS else name
    order = list(ASSIGNMENTS)
    text = program(home, order[:order.index(home) + 1])
    return source.plain(text) if name in BUGS else text


@cache
def sealed(name):
    """What students start from: the functions of all assignments are blank, or a bug is planted."""
    if name not in BUGS:
        asks = {part.function: f"{part.asks} {part.checked}".strip() for part in ALL[name]["parts"]}
        return program(name, [], asks)
    text, bug = reference(name), BUGS[name]
    inside = ast.get_source_segment(text, source.definitions(text)[bug["function"]])
    return text.replace(inside, inside.replace(bug["right"], bug["wrong"]))


def other_bugs(name):
    """Three programs, each with another bug than that of the hunt."""
    return [reference(name).replace(right, wrong) for right, wrong in BUGS[name]["others"]]
