"""The command line: what each command takes, and what it was given, checked before it plays."""
import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path

from lab.digest import HERE

NUMBERS = "steps", "runs"
LISTS = "datasets", "algorithms"


def option(default, text, **how):
    """A field of Options, and its help."""
    return field(default=default, metadata={"help": text, **how})


@dataclass(frozen=True)
class Options:
    """What a command was given. A command gets no option that it does not take: then it is None."""
    command: str
    steps: int | None = option(None, "steps per run", type=int)
    runs: int | None = option(None, "number of runs", type=int)
    datasets: tuple | None = option(None, "only these data sets", nargs="+", metavar="NAME")
    algorithms: tuple | None = option(None, "only these algorithms", nargs="+", metavar="NAME")
    csv: Path | None = option(None, "a table of your own; its last column is the class", type=Path)
    quick: bool = option(False, "a rough version, in half a minute", action="store_true")
    fresh: bool = option(False, "play everything, even what this program has played already",
                         action="store_true")
    verify: bool = option(False, "play a sample of the runs in the file once more; if they agree, "
                          "take all over for the program as it is now", action="store_true")
    seed: int = option(0, "another seed draws other runs", type=int)
    jobs: int = option(os.cpu_count(), "processes (default: one per core)", type=int)
    out: Path | None = option(None, "folder (default: figures/own, with --quick figures/quick)",
                              type=Path)
    data_dir: Path | None = option(None, "where downloaded data is", type=Path)
    dask: str | None = option(None, "address of a Dask cluster; pip install distributed")


@dataclass(frozen=True)
class Command:
    """What is measured, told and drawn; which options it takes are the keys of `full`."""
    what: str
    minutes: int                   # on two cores
    measure: Callable              # measure(options) -> lines of results, or other plain data
    tell: Callable | None = None   # tell(measured) -> text
    draw: Callable | None = None   # draw(measured) -> {name: figure}
    pages: Callable | None = None  # pages(measured) -> {file: text}
    full: dict = field(default_factory=dict)    # steps, runs, datasets, ...: defaults
    quick: dict = field(default_factory=dict)   # other defaults, with --quick
    least: dict = field(default_factory=dict)   # steps, runs: the fewest
    again: tuple = ("fresh", "verify")          # which of these two it takes


def parse(argv, commands):
    """The options on the command line; None if it names no command. Bad ones end the program."""
    parser = argparse.ArgumentParser(description="Without a command: lists the commands.")
    parser.add_argument("command", nargs="?", choices=commands, metavar="COMMAND")
    for one in fields(Options)[1:]:
        parser.add_argument(f"--{one.name.replace('_', '-')}", default=None, **one.metadata)
    given = {name: value for name, value in vars(parser.parse_args(argv)).items()
             if value is not None and value is not False}
    if "command" not in given:
        return None
    command = commands[given["command"]]
    for name in given:
        if name in (*NUMBERS, *LISTS, "csv") and name not in command.full:
            parser.error(f"--{name}: {given['command']} does not take it")
        if name in ("fresh", "verify") and name not in command.again:
            parser.error(f"--{name}: {given['command']} does not take it")
    for name in LISTS:
        if name in given:
            given[name] = chosen(parser, name, given[name], command.full[name])
    for name, least in {"runs": 1, "steps": 1, "jobs": 1, "seed": 0, **command.least}.items():
        if given.get(name, least) < least:
            parser.error(f"--{name}: expected at least {least}, got {given[name]}")
    if "fresh" in given and "verify" in given:
        parser.error("--verify: expected without --fresh")
    if "csv" in given and "datasets" in given:
        parser.error("--csv: expected without --datasets")
    if "csv" in given and not given["csv"].is_file():
        parser.error(f"--csv: expected a file, got {given['csv']}")
    defaults = command.full | (command.quick if "quick" in given else {})
    defaults["out"] = HERE / "figures" / ("quick" if "quick" in given else "own")
    return Options(**defaults | given)


def chosen(parser, option, words, known):
    """The names in words, which may be separated by spaces or commas, in the order of `known`."""
    names = [name for word in words for name in word.split(",") if name]
    for name in names:
        if name not in known:
            parser.error(f"--{option}: expected some of {', '.join(known)}, got {name}")
    return tuple(name for name in known if name in names)


def listing(commands):
    """All commands, on a screen."""
    lines = [f"  {name:12} {one.what} ({one.minutes} min)" for name, one in commands.items()]
    return "\n".join(["commands (minutes on two cores):", *lines, "",
                      "as in: python experiments.py table --datasets statlog,adult --runs 5; "
                      "options: --help"])
