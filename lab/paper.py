"""The paper's own numbers, to stand beside ours: paper.toml has them."""
import tomllib
from pathlib import Path

printed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RUNS, NONLINEAR = printed["runs"], printed["nonlinear"]
TABLE, AMAZON = printed["table"], printed["amazon"]
WHEEL = {float(delta): numbers for delta, numbers in printed["wheel"].items()}
ALGORITHMS = "linear", "neural-linear", "both-priors", "mu-prior", "no-prior"    # in TABLE's order


def number(dataset, algorithm):
    """The paper's (mean, standard deviation), or None."""
    return dict(zip(ALGORITHMS, TABLE.get(dataset, ()), strict=False)).get(algorithm)


def cell(number):
    """'mean ± standard deviation' as the paper prints it; '' where it has no number."""
    return "{:g} ± {:g}".format(*number) if number else ""
