"""Copies of the program that tests change, and commands as a user starts them."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
MEASURE = """
import importlib, sys
import experiments
from lab.options import parse
options = parse(sys.argv[1:], "", experiments.COMMANDS)
importlib.import_module(experiments.COMMANDS[options.command].study).measure(options)
"""


def copy_of_program(folder):
    """What plays runs, in a folder of its own."""
    program = folder / "program"
    for name in ("lab", "studies", "data"):
        shutil.copytree(HERE / name, program / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("nlts.py", "nlts_beyond.py", "datasets.py", "experiments.py"):
        shutil.copy(HERE / name, program)
    return program


def edited(path, old, new):
    """Replace a text that a file has once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old, text.count(old))
    path.write_text(text.replace(old, new), encoding="utf-8")


def start(program, *arguments):
    """A command that measures, without its report, as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", MEASURE, *arguments], cwd=program, text=True, encoding="utf-8",
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def measure(program, *arguments):
    """What a command added to its file, by algorithm and run; and its words."""
    out = Path(arguments[arguments.index("--out") + 1])
    path = out / f"{arguments[0]}.jsonl"
    before = len(path.read_bytes().splitlines()) if path.exists() else 0
    printed, words = start(program, *arguments).communicate()
    lines = path.read_text(encoding="utf-8").splitlines()[before:] if path.exists() else []
    results = [json.loads(line) for line in lines]
    return sorted(results, key=lambda result: (result["algorithm"], result["run"])), printed + words
