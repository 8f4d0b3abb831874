"""The assignments, from catalogue.toml: what is written, in how many hours, for how many points."""
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

POINTS_PER_HOUR = 10


@dataclass(frozen=True)
class Part:
    """A function to write. It is graded alone, with the reference in place of all others."""
    function: str
    hours: float
    optional: bool = False

    @property
    def points(self):
        return round(POINTS_PER_HOUR * self.hours, 2)

    @property
    def marker(self):
        """Its short name: on the command line, as a column, and as a marker of pytest."""
        return self.function.replace("BayesianLinearRegression", "blr").replace(".", "_").lower()


@dataclass(frozen=True)
class Assignment:
    """What to learn and to read, what to write, and the seconds that a test may take."""
    goal: str
    reads: str
    seconds: float
    required: dict                               # {function: hours}
    optional: dict = field(default_factory=dict)
    asks: dict = field(default_factory=dict)     # {function: what its docstring adds in a handout}
    extra: str | None = None                     # a file of functions that are not in nlts.py

    @property
    def parts(self):
        needed = [Part(function, hours) for function, hours in self.required.items()]
        return needed + [Part(function, hours, True) for function, hours in self.optional.items()]

    @property
    def hours(self):
        return sum(self.required.values())


TABLES = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
ASSIGNMENTS = {name: Assignment(**table) for name, table in TABLES.items()}
HOME = {part.function: name for name, a in ASSIGNMENTS.items() for part in a.parts}


def sealed_while(name):
    """The functions of later assignments: blank while this one is worked on."""
    order = list(ASSIGNMENTS)
    return [function for function in HOME if order.index(HOME[function]) > order.index(name)]
