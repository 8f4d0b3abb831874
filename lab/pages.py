"""The command `results`: numbers of README.md and figures/README.md, from files of results."""
import re

from lab.options import HERE

PAGES = "README.md", "figures/README.md"
BLOCK = re.compile(r"<!-- ([\w./-]+\.(?:txt|md))(: first part)? -->\n.*?<!-- end -->", re.DOTALL)


def measure(options):
    """{page: its text} with all blocks filled."""
    return {str(HERE / name): filled(HERE / name) for name in PAGES}


def filled(path):
    """Fill each marked block of a page with the file it names, or with the file's first part."""
    def fill(match):
        text = content(path.parent / match[1], first=bool(match[2]))
        return f"<!-- {match[1]}{match[2] or ''} -->\n{text}\n<!-- end -->"

    return BLOCK.sub(fill, path.read_text(encoding="utf-8"))


def content(source, first=False):
    """What stands in a block; the first part ends at an empty line."""
    if not source.exists():
        return "*Not measured yet.*"
    text = source.read_text(encoding="utf-8").strip("\n")
    text = text.partition("\n\n")[0] if first else text
    return f"```\n{text}\n```" if source.suffix == ".txt" else text


def report(pages):
    """What was filled."""
    return "\n".join(f"filled: {path}" for path in pages)


def files(pages):
    """The pages, at their places."""
    return pages
