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
    parts: tuple
    extra: str | None
    asks: dict = field(compare=False)            # {function: what its docstring adds in a handout}

    @property
    def functions(self):
        return [part.function for part in self.parts]

    @property
    def hours(self):
        return sum(part.hours for part in self.parts if not part.optional)


def read_catalogue():
    """{name: Assignment} in the order of the course."""
    tables = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    found = {}
    for name, table in tables.items():
        parts = [Part(function, hours) for function, hours in table["parts"].items()]
        optional = table.get("optional", {})
        parts += [Part(function, hours, True) for function, hours in optional.items()]
        found[name] = Assignment(table["goal"], table["reads"], table["seconds"], tuple(parts),
                                 table.get("extra"), table.get("asks", {}))
    return found


ASSIGNMENTS = read_catalogue()


def home_of(function):
    """The name of the assignment that a function belongs to."""
    return next(name for name, a in ASSIGNMENTS.items() if function in a.functions)


def sealed_while(name):
    """The functions of later assignments: blank while this one is worked on."""
    later = list(ASSIGNMENTS)[list(ASSIGNMENTS).index(name) + 1:]
    return [function for other in later for function in ASSIGNMENTS[other].functions]
