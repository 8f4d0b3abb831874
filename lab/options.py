"""The command line: a subcommand per figure or table, with the options that it takes."""
import argparse
import os
from dataclasses import dataclass, field, fields
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


def option(default, text, **how):
    """A field of Options, and its help."""
    return field(default=default, metadata={"help": text, **how})


def names(text):
    """Names that are separated by commas."""
    return tuple(name for name in text.split(",") if name)


@dataclass(frozen=True)
class Options:
    """What a command was given. Options that a command does not take keep these defaults."""
    command: str
    runs: int | None = option(None, "number of runs", type=int)
    steps: int | None = option(None, "steps per run", type=int)
    datasets: tuple = option((), "only these data sets: NAME,NAME", type=names, metavar="NAMES")
    algorithms: tuple = option((), "only these algorithms: NAME,NAME", type=names, metavar="NAMES")
    csv: Path | None = option(None, "a table of your own; its last column is the class", type=Path)
    drift: bool = option(False, "contexts drift: rows along their first principal component",
                         action="store_true")
    prior: Path | None = option(None, "a file of your own priors, each played with limited memory",
                                type=Path, metavar="FILE")
    noise: Path | None = option(None, "a file of your own noises, each played with both-priors and "
                                "with full memory", type=Path, metavar="FILE")
    seed: int = option(0, "another seed draws other runs", type=int)
    out: Path = option(HERE / "figures/own", "folder for results (default: figures/own)", type=Path)
    jobs: int = option(os.cpu_count(), "processes (default: one per core)", type=int)
    data_dir: Path | None = option(None, "where downloaded data is", type=Path)
    dask: str | None = option(None, "address of a Dask cluster; pip install distributed")
    fresh: bool = option(False, "play everything again", action="store_true")
    verify: bool = option(False, "play a sample of the runs on file once more; if they agree, take "
                          "over results of older code", action="store_true")


PLAYING = "jobs", "data_dir", "dask", "fresh", "verify"    # of commands that play runs


@dataclass(frozen=True)
class Command:
    """A figure or a table: the study that makes it, and what it takes."""
    what: str
    minutes: int                                      # on two cores
    study: str                                        # a module with measure, report and plot
    defaults: dict = field(default_factory=dict)      # of the options that it takes
    choices: dict = field(default_factory=dict)       # datasets, algorithms: if not the defaults
    plays: bool = True                                # runs that are kept on file


def parse(argv, description, commands):
    """The options on the command line; None if it names no command. Bad ones end the program."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in commands.items():
        text = f"{command.what} ({command.minutes} min on two cores)"
        subparser = subparsers.add_parser(name, help=text, description=text)
        for entry in fields(Options)[1:]:
            add_option(subparser, command, entry.name, entry.default, dict(entry.metadata))
    given = vars(parser.parse_args(argv))
    if given["command"] is None:
        parser.print_help()
        return None
    check(subparsers.choices[given["command"]], commands[given["command"]], given)
    if given.get("csv"):
        given["datasets"] = (str(given["csv"]),)
    return Options(**given)


def add_option(parser, command, name, default, how):
    """An option, if the command takes it."""
    always = ("seed", "out", *(PLAYING if command.plays else ()))
    if name not in command.defaults and name not in always:
        return
    default = command.defaults.get(name, default)
    if name in ("datasets", "algorithms"):
        known = command.choices.get(name, default)
        how["help"] += f"; some of {', '.join(known)}"
    if name in ("runs", "steps"):
        how["help"] += f" (default: {default})"
    parser.add_argument(f"--{name.replace('_', '-')}", default=default, **how)


def check(parser, command, given):
    """End the program if an option has a bad value."""
    for name in ("datasets", "algorithms"):
        known = command.choices.get(name, command.defaults.get(name, ()))
        for word in given.get(name, ()):
            if word not in known:
                parser.error(f"--{name}: expected some of {', '.join(known)}, got {word}")
    for name, least in {"runs": 1, "steps": 1, "jobs": 1, "seed": 0}.items():
        if given.get(name) is not None and given[name] < least:
            parser.error(f"--{name}: expected at least {least}, got {given[name]}")
    for name in ("csv", "prior", "noise"):
        if given.get(name) and not given[name].is_file():
            parser.error(f"--{name}: expected a file, got {given[name]}")
    if given.get("csv"):
        known = command.defaults["datasets"]
        if given["csv"].suffix != ".csv" or given["csv"].stem in known:
            parser.error("--csv: expected a name such as mine.csv, of no data set, got "
                         f"{given['csv']}")
        if given["datasets"] != known:
            parser.error("--csv: expected without --datasets")
    if given.get("fresh") and given.get("verify"):
        parser.error("--verify: expected without --fresh")
