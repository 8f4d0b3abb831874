"""The assignments of catalogue.toml, the hunts of hunts.toml, and the program of each."""
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
    """A function to write."""
    function: str
    hours: float
    asks: str = ""
    checked: str = "Checked up to 1e-4 of the largest number."

    @property
    def points(self):
        return round(10 * self.hours, 2)

    @property
    def marker(self):
        """Its short name: on the command line, as a column, and of its tests in cases.py."""
        return self.function.replace("BayesianLinearRegression", "blr").replace(".", "_").lower()


def read_text(*names):
    """A text file of the classroom."""
    return HERE.joinpath(*names).read_text(encoding="utf-8")


ASSIGNMENTS = tomllib.loads(read_text("catalogue.toml"))
for name, table in ASSIGNMENTS.items():
    table |= {"home": name, "parts": [Part(**part) for part in table["parts"]]}
    table["hours"] = round(sum(part.hours for part in table["parts"]), 2)
ORDER = list(ASSIGNMENTS)
HOME = {part.function: name for name, a in ASSIGNMENTS.items() for part in a["parts"]}
BUGS = tomllib.loads(read_text("hunts.toml"))
for table in BUGS.values():
    function = table["function"]
    table |= {"home": HOME[function], "parts": [Part(function, 0.5)], "seconds": 30}
ALL = ASSIGNMENTS | BUGS


@cache
def reference(name):
    """The part of nlts.py that an assignment needs; functions of later ones are blank. In a hunt
    no comment betrays a line."""
    home = ALL[name]["home"]
    text = (ROOT / "nlts.py").read_text(encoding="utf-8")
    if home == "prior":
        own = read_text("student", "better_prior.py")
        text += "\n\n" + own.partition("import numpy as np\n")[2]
    else:
        functions = [part.function for part in ASSIGNMENTS[home]["parts"]]
        text = source.only(text, {function.partition(".")[0] for function in functions}
                           | set(ASSIGNMENTS[home].get("uses", [])))
    later = ORDER[ORDER.index(home) + 1:]
    text = source.blank(text, [part for part in HOME if HOME[part] in later])
    return ast.unparse(source.parse(text)) + "\n" if name in BUGS else text


@cache
def handed_out(name):
    """The nlts.py of students: the assignment's functions are blank, or a bug is planted."""
    if name not in BUGS:
        asks = {part.function: f"{part.asks} {part.checked}".strip() for part in ALL[name]["parts"]}
        return source.blank(reference(name), list(asks), asks)
    text, bug = reference(name), BUGS[name]
    inside = ast.get_source_segment(text, source.definitions(text)[bug["function"]])
    return text.replace(inside, inside.replace(bug["right"], bug["wrong"]))


def other_bugs(name):
    """Three programs, each with another bug than that of the hunt."""
    return [reference(name).replace(right, wrong) for right, wrong in BUGS[name]["others"]]
