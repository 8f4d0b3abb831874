"""The pages with results: numbers come from the results files, none is typed by hand."""
import re

from lab import paper
from lab.digest import HERE
from lab.report import markdown_table, mean_sd, name_of

BLOCK = re.compile(r"<!-- ([\w./-]+\.(?:txt|md|png))(: [^\n]*)? -->\n.*?<!-- end -->", re.DOTALL)
COLUMNS = {"both-priors": "the paper's method", "carried": "carried prior",
           "recommended": "recommended", "neural-linear": "full memory", "no-prior": "no prior"}


def fill(o):
    """Fill the marked blocks of figures/README.md and README.md."""
    for path in (HERE / "figures" / "README.md", HERE / "README.md"):
        path.write_text(filled(path), encoding="utf-8")
        print(f"filled: {path}")


def filled(path):
    """The page with each file that a block names put between the block's marks. A picture stands
    there with its name and the text behind it; a report that ends in `: first part`, up to its
    first empty line."""
    def fill(match):
        name, text = match[1], match[2] or ""
        return f"<!-- {name}{text} -->\n{content(path.parent / name, name, text)}\n<!-- end -->"

    return BLOCK.sub(fill, path.read_text(encoding="utf-8"))


def content(source, name, text):
    """What stands in a block."""
    if not source.exists():
        return "*Not measured yet.*"
    if source.suffix == ".png":
        return f"![{text.removeprefix(': ')}]({name})"
    found = source.read_text(encoding="utf-8").strip("\n")
    if text == ": first part":
        found = found.split("\n\n")[0]
    return f"```\n{found}\n```" if source.suffix == ".txt" else found


def summary(rewards):
    """The results in README.md: the paper's number, its method, ours and others."""
    names = [name for name in COLUMNS if all(name in own for own in rewards.values())]
    rows = [[name_of(d), paper.cell(paper.number(d, "both-priors")),
             *(mean_sd(own[name]) for name in names)] for d, own in rewards.items()]
    runs = max(len(x) for own in rewards.values() for x in own.values())
    header = [f"{runs} runs", f"in the paper, {paper.RUNS} runs", *(COLUMNS[n] for n in names)]
    return markdown_table(header, rows)
