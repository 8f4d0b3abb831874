"""The command line: a subcommand per figure or table, with the options that it takes."""
import subprocess
import sys
from pathlib import Path

import pytest
from made_programs import HERE

import datasets
import experiments
from lab.options import parse

BAD = {  # option: a value, and what is expected
    "runs": ("0", "at least 1"),
    "steps": ("0", "at least 1"),
    "datasets": ("iris", "some of"),
    "algorithms": ("iris", "some of"),
    "csv": ("nowhere", "a file"),
    "prior": ("nowhere", "a file"),
    "noise": ("nowhere", "a file"),
}


def refused(arguments, capsys):
    """The sentence that answers bad options."""
    with pytest.raises(SystemExit) as stop:
        parse(arguments.split(), "", experiments.COMMANDS)
    assert stop.value.code == 2
    *usage, sentence = capsys.readouterr().err.strip().splitlines()
    return sentence


def test_without_a_command_it_lists_all_and_imports_no_study():
    """NumPy alone would take longer than the list."""
    code = ("import sys, experiments; experiments.main([]); "
            "sys.exit('numpy' in sys.modules or 'torch' in sys.modules)")
    listing = subprocess.run([sys.executable, "-c", code], cwd=HERE, check=True,
                             capture_output=True, text=True).stdout
    listed = [line.split()[0] for line in listing.splitlines() if line[:5].strip()]
    assert set(experiments.COMMANDS) <= set(listed)


@pytest.mark.parametrize("name, command", experiments.COMMANDS.items())
def test_options_are_refused_that_are_bad_or_that_a_command_does_not_take(name, command, capsys):
    for option, (value, expected) in BAD.items():
        sentence = refused(f"{name} --{option} {value}", capsys)
        if option in command.defaults:
            assert f"--{option}: expected {expected}" in sentence
            assert sentence.endswith(f"got {value}")
        else:
            assert f"unrecognized arguments: --{option}" in sentence


@pytest.mark.parametrize("arguments, word", [
    ("nonsense", "COMMAND"), ("table --jobs 0", "--jobs"), ("table --seed -1", "--seed"),
    ("table --fresh --verify", "--verify"), ("sanity --verify", "--verify"),
    ("table --csv t.txt", "expected a name such as mine.csv"),
    ("table --csv statlog.csv", "expected a name such as mine.csv"),
    ("table --csv mine.csv --datasets adult", "--csv: expected without --datasets")])
def test_bad_options_are_refused_in_one_sentence(arguments, word, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("t.txt", "statlog.csv", "mine.csv"):
        Path(name).touch()
    assert word in refused(arguments, capsys)


def test_help_names_all_choices(capsys):
    with pytest.raises(SystemExit):
        experiments.main(["forgetting", "--help"])
    assert "perfect-prior" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["table", "equal"])
def test_every_table_of_the_sources_is_a_choice(command):
    names = tuple(name for name in datasets.SOURCES if name != "amazon")
    options = parse([command, "--datasets", ",".join(names)], "", experiments.COMMANDS)
    assert options.datasets == names
