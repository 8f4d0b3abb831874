"""The command `results`: numbers of README.md and figures/README.md, from files of results."""
import json
import re

from lab.options import HERE
from lab.report import markdown_table

PAGES = "README.md", "figures/README.md"
CLAIMED = "forgetting", "table", "depth", "amazon", "wheel", "sanity"    # commands with claims
HEADER = ("the paper's claim", "where", "in the paper", "as printed", "smallest solution", "runs",
          "verdict")
BLOCK = re.compile(
    r"<!-- ([\w./-]+\.(?:txt|md))(?:: part (\d))? -->\n.*?<!-- end -->", re.DOTALL)


def measure(options):
    """{page: its text} with all blocks filled."""
    (HERE / "figures/all-claims.md").write_text(claims(HERE / "figures"), encoding="utf-8")
    return {str(HERE / name): filled(HERE / name) for name in PAGES}


def filled(path):
    """Fill each marked block of a page with the file that it names, or with a part of it."""
    def fill(match):
        name, part = match.groups()
        mark = f"{name}: part {part}" if part else name
        return f"<!-- {mark} -->\n{content(path.parent / name, part)}\n<!-- end -->"

    return BLOCK.sub(fill, path.read_text(encoding="utf-8"))


def content(source, part=None):
    """What stands in a block. Parts end at empty lines; the first of a report is its answer, which
    stands as a sentence, and others are tables."""
    if not source.exists():
        return "*Not measured yet.*"
    text = source.read_text(encoding="utf-8").strip("\n")
    if part:
        text = text.split("\n\n")[int(part) - 1]
    if source.suffix == ".md":
        return text
    return text.replace("\n", " ") if part == "1" else f"```\n{text}\n```"


def claims(folder):
    """The table of the paper's claims, of all commands that have been played."""
    found = [folder / f"{name}.claims.json" for name in CLAIMED]
    rows = [row for path in found if path.exists() for row in json.loads(path.read_text())]
    return markdown_table(HEADER, rows)


def report(pages):
    """What was filled."""
    return f"filled: {', '.join(PAGES)}"


def files(pages):
    """The pages, at their places."""
    return pages
