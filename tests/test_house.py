"""The house rules: promised sizes, links that lead somewhere, one installed module."""
import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent
SKIPPED = {".git", ".venv", "build", "quick"}
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


def length(node):
    return node.end_lineno - node.lineno + 1


@pytest.mark.parametrize("path", product(), ids=lambda path: str(path.relative_to(HERE)))
def test_files_and_functions_are_short(path):
    source = path.read_text()
    assert source.count("\n") <= 600
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions if length(node) > 60] == []


def test_all_of_it_is_as_short_as_promised():
    assert sum(path.read_text().count("\n") for path in product()) <= 5200


@pytest.mark.parametrize("path", product(), ids=lambda path: str(path.relative_to(HERE)))
def test_nothing_is_patched_from_outside(path):
    """No attribute of an imported module is assigned."""
    tree = ast.parse(path.read_text())
    modules = {alias.asname or alias.name.split(".")[0] for node in ast.walk(tree)
               if isinstance(node, ast.Import) for alias in node.names}
    targets = [target for node in ast.walk(tree) if isinstance(node, ast.Assign)
               for target in node.targets if isinstance(target, ast.Attribute)]
    patched = [ast.unparse(target) for target in targets
               if isinstance(target.value, ast.Name) and target.value.id in modules]
    assert patched == []


@pytest.mark.parametrize("name, most", [("README.md", 200), ("CONTRIBUTING.md", 40),
                                        ("nlts.py", 450), ("beyond.py", 120),
                                        ("datasets.py", 550), ("experiments.py", 550)])
def test_a_page_is_as_short_as_promised(name, most):
    assert (HERE / name).read_text().count("\n") <= most


def missing_links(page, text):
    """What a page points to that is not there."""
    targets = [first or second for first, second in LINK.findall(text)]
    local = [t for t in targets if not t.startswith(("http", "data:", "mailto:", "{", "$"))]
    return [target for target in local if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", [*found("*.md"), *found("*.html")],
                         ids=lambda path: str(path.relative_to(HERE)))
def test_every_link_and_picture_exists(page):
    if page.parent.name in ("student", "handouts"):
        pytest.skip("its links are those of the student's folder")
    assert missing_links(page, page.read_text()) == []


def test_a_dead_link_is_seen():
    page = HERE / "README.md"
    assert missing_links(page, "[a](nlts.py) ![b](figures/no.png)") == ["figures/no.png"]


def test_every_picture_is_shown_on_a_page():
    shown = "".join(page.read_text() for page in found("*.md"))
    pictures = [path.name for path in (HERE / "figures").glob("*.png")]
    assert [name for name in pictures if name not in shown] == []


def test_only_nlts_is_installed():
    """The module `datasets` has the name of another package, and the grader must see no nlts."""
    settings = tomllib.loads((HERE / "pyproject.toml").read_text())
    assert settings["tool"]["setuptools"] == {"py-modules": ["nlts"]}
    assert not any("cvxpy" in need for need in settings["project"]["dependencies"])


def test_no_data_of_others_is_tracked():
    """What git tracks in data/ is what data/README.md names."""
    listed = subprocess.run(["git", "ls-files", "data"], cwd=HERE, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    page = (HERE / "data" / "README.md").read_text()
    assert [name for name in listed.stdout.split() if Path(name).name not in page
            and Path(name).name != "README.md"] == []
