"""Priors and noises of your own: functions in a file, each an algorithm named after itself."""
import importlib
import inspect
import sys
from pathlib import Path

from lab.recipes import RECIPES, limited, with_arguments

PRIOR = "forgotten", "E_old", "E_new", "weights", "lam"
NOISE = "arms", "config", "rng"


def algorithms(options):
    """{name: recipe} of the algorithms that a command plays, with those of --prior and --noise."""
    found = {name: RECIPES[name] for name in options.algorithms}
    if options.prior:
        for name, prior in functions_in(options.prior, PRIOR).items():
            found[free(name, found, options.prior)] = limited(prior)
    if options.noise:
        for name, noise in functions_in(options.noise, NOISE).items():
            for base in ("both-priors", "neural-linear"):
                recipe = with_arguments(RECIPES[base], noise=noise)
                found[free(f"{name}, {base}", found, options.noise)] = recipe
    return found


def functions_in(path, arguments):
    """{name: function} of the functions at the top of a file that take just these arguments."""
    module = load(path)
    found = {name: function for name, function in vars(module).items()
             if inspect.isfunction(function) and function.__module__ == module.__name__
             and function.__name__ == name and required(function) == arguments}
    if not found:
        sys.exit(f"{path}: expected `def name({', '.join(arguments)})` at the top of the file")
    return found


def required(function):
    """The names of a function's arguments without default."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.default is p.empty)


def load(path):
    """The module in a file; worker processes find it by its name, as this one does."""
    path = path.resolve()
    if path.suffix != ".py" or not path.stem.isidentifier():
        sys.exit(f"{path}: expected a name such as my_prior.py")
    sys.path.append(str(path.parent))                 # last: nlts.py beside it is not imported
    module = importlib.import_module(path.stem)       # an error in it names file and line
    if Path(getattr(module, "__file__", "")).resolve() != path:
        sys.exit(f"{path}: expected another name, {path.stem} is a module already")
    return module


def free(name, found, path):
    """The name, if no algorithm has it."""
    if name in found or name in RECIPES:
        sys.exit(f"{path}: expected another name, {name} is an algorithm already")
    return name
