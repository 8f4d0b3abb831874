"""The house rules: links lead somewhere, no import leads back, data of others stays out."""
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent
SKIPPED = {".git", ".venv", "build", "own", "student", "handouts"}   # students' links are theirs
LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)[^)]*\)|(?:src|href)=\"([^\"#]+)[^\"]*\"")


def found(pattern):
    """Files of the repository, without what is installed or played."""
    return [path for path in sorted(HERE.rglob(pattern))
            if not SKIPPED & set(path.relative_to(HERE).parts)]


def missing_links(page, text):
    """What a page points to that is not there."""
    targets = [first or second for first, second in LINK.findall(text)]
    local = [t for t in targets if not t.startswith(("http", "data:", "mailto:", "{", "$"))]
    return [target for target in local if not (page.parent / target).exists()]


def test_every_link_and_picture_exists():
    for page in [*found("*.md"), *found("*.html")]:
        assert missing_links(page, page.read_text(encoding="utf-8")) == [], page
    page = HERE / "README.md"                         # and a dead link is seen
    assert missing_links(page, "[a](nlts.py) ![b](figures/no.png)") == ["figures/no.png"]


def test_every_picture_is_shown_on_a_page():
    shown = "".join(page.read_text(encoding="utf-8") for page in found("*.md"))
    assert [path.name for path in (HERE / "figures").glob("*.png") if path.name not in shown] == []


@pytest.mark.parametrize("folder, later", [("lab", "experiments|studies"),
                                           ("studies", "experiments")])
def test_nothing_leads_back(folder, later):
    """lab/ knows no study and no command, a study no command."""
    back = re.compile(rf"^\s*(import|from) ({later})\b(?!\.\w+_agents)", re.MULTILINE)
    texts = {path.name: path.read_text(encoding="utf-8") for path in (HERE / folder).glob("*.py")}
    assert [name for name, text in texts.items() if back.search(text)] == []


def test_no_data_of_others_is_tracked():
    """What git tracks in data/ is what data/README.md names."""
    listed = subprocess.run(["git", "ls-files", "data"], cwd=HERE, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    page = (HERE / "data" / "README.md").read_text(encoding="utf-8")
    assert [name for name in listed.stdout.split() if Path(name).name not in page
            and Path(name).name != "README.md"] == []
