"""The house rules: nothing is patched, links lead somewhere, what is installed, the plan."""
import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import experiments

HERE = Path(__file__).resolve().parent.parent
SKIPPED = {".git", ".venv", "build", "quick", "own"}
LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)[^)]*\)|(?:src|href)=\"([^\"#]+)[^\"]*\"")


def found(pattern):
    """Files of the repository, without what is installed or rough."""
    paths = sorted(HERE.rglob(pattern))
    return [path for path in paths if not SKIPPED & set(path.relative_to(HERE).parts)]


def product():
    """All Python files but tests."""
    parts = [(path, path.relative_to(HERE)) for path in found("*.py")]
    return [path for path, name in parts
            if name.parts[0] != "tests" and not name.name.startswith(("test_", "conftest"))]


@pytest.mark.parametrize("path", product(), ids=lambda path: str(path.relative_to(HERE)))
def test_nothing_is_patched_from_outside(path):
    """No attribute of an imported module is assigned."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {alias.asname or alias.name.split(".")[0] for node in ast.walk(tree)
               if isinstance(node, ast.Import) for alias in node.names}
    targets = [target for node in ast.walk(tree) if isinstance(node, ast.Assign)
               for target in node.targets if isinstance(target, ast.Attribute)]
    patched = [ast.unparse(target) for target in targets
               if isinstance(target.value, ast.Name) and target.value.id in modules]
    assert patched == []


def missing_links(page, text):
    """What a page points to that is not there. A picture may be missing as long as its command has
    not been run: then its text is missing, too."""
    targets = [first or second for first, second in LINK.findall(text)]
    local = [t for t in targets if not t.startswith(("http", "data:", "mailto:", "{", "$"))]
    missing = [target for target in local if not (page.parent / target).exists()]
    return [target for target in missing if not awaited(page.parent / target)]


def awaited(path):
    """Whether a path is a picture of a command that has not been run."""
    name = {"kinds": "table"}.get(path.stem, path.stem)
    draws = name in experiments.COMMANDS and experiments.COMMANDS[name].draw
    return bool(draws) and path.suffix == ".png" and not path.with_name(f"{name}.txt").exists()


@pytest.mark.parametrize("page", [*found("*.md"), *found("*.html")],
                         ids=lambda path: str(path.relative_to(HERE)))
def test_every_link_and_picture_exists(page):
    if page.parent.name in ("student", "handouts"):
        pytest.skip("its links are those of the student's folder")
    assert missing_links(page, page.read_text(encoding="utf-8")) == []


def test_a_dead_link_is_seen():
    page = HERE / "README.md"
    assert missing_links(page, "[a](nlts.py) ![b](figures/no.png)") == ["figures/no.png"]


def test_every_picture_is_shown_on_a_page():
    shown = "".join(page.read_text(encoding="utf-8") for page in found("*.md"))
    pictures = [path.name for path in (HERE / "figures").glob("*.png")]
    assert [name for name in pictures if name not in shown] == []


def test_what_is_installed():
    """Two modules; `datasets` has the name of another package, and the grader must see no nlts."""
    settings = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"] == {"py-modules": ["nlts", "nlts_beyond"]}
    assert not any("cvxpy" in need for need in settings["project"]["dependencies"])


def imported(path):
    """The modules of this project that a file imports, as paths."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    paths = {HERE / f"{name.replace('.', '/')}.py" for name in found}
    return {found for found in paths if found.exists()}


def test_nothing_leads_back():
    """lab/ knows no study and no command, a study no command: nobody is led back into a file."""
    for path in product():
        names = {str(other.relative_to(HERE)) for other in imported(path)}
        folder = path.relative_to(HERE).parts[0]
        if folder in ("lab", "studies"):
            assert "experiments.py" not in names
        if folder == "lab":
            assert not any(name.startswith("studies/") for name in names)
        if path.name in ("nlts.py", "nlts_beyond.py"):
            assert names <= {"nlts.py"}


def test_the_files_between_the_command_line_and_a_picture():
    """What `forgetting` leads a reader through: each file knows only later ones of this list."""
    order = ["experiments.py", "lab/options.py", "lab/runs.py", "lab/digest.py", "lab/recipes.py",
             "lab/report.py", "lab/statistics.py", "nlts.py"]
    for i, name in enumerate(order):
        names = {str(other.relative_to(HERE)) for other in imported(HERE / name)}
        assert not names & set(order[:i])


@pytest.mark.parametrize("path", product(), ids=lambda path: str(path.relative_to(HERE)))
def test_text_is_read_and_written_in_one_encoding(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)
             and isinstance(node.func, ast.Attribute)
             and node.func.attr in ("read_text", "write_text")]
    assert [ast.unparse(call) for call in calls if "'utf-8" not in ast.unparse(call)] == []


def test_no_data_of_others_is_tracked():
    """What git tracks in data/ is what data/README.md names."""
    listed = subprocess.run(["git", "ls-files", "data"], cwd=HERE, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    page = (HERE / "data" / "README.md").read_text(encoding="utf-8")
    assert [name for name in listed.stdout.split() if Path(name).name not in page
            and Path(name).name != "README.md"] == []
