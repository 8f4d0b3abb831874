"""The pages with results: numbers come from the results files, none is typed by hand."""
import re

from lab import paper, verdicts
from lab.runs import HERE
from lab.text import markdown_table, mean_sd

BLOCK = re.compile(r"<!-- ([\w./-]+\.(?:txt|md)) -->\n.*?<!-- end -->", re.DOTALL)
COLUMNS = {"both-priors": "the paper's method", "carried": "ours",
           "neural-linear": "full memory", "no-prior": "no prior"}


def results(o):
    """Fill the marked blocks of figures/README.md and README.md."""
    for path in (HERE / "figures" / "README.md", HERE / "README.md"):
        path.write_text(filled(path))
        print(f"filled: {path}")


def filled(path):
    """The page with each file that a block names put between the block's marks."""
    def fill(match):
        source = path.parent / match[1]
        if not source.exists():
            return match[0]
        content = source.read_text().strip("\n")
        if source.suffix == ".txt":
            content = f"```\n{content}\n```"
        return f"<!-- {match[1]} -->\n{content}\n<!-- end -->"

    return BLOCK.sub(fill, path.read_text())


def summary(rewards):
    """The results in README.md: the paper's number, its method, ours and two others; claims."""
    rows = []
    for d, own in rewards.items():
        cells = [mean_sd(own[name]) for name in COLUMNS]
        rows.append([verdicts.name_of(d), paper.cell(paper.number(d, "both-priors")), *cells])
    header = [f"{len(own['linear'])} runs", f"in the paper, {paper.RUNS} runs", *COLUMNS.values()]
    found = [f"- {claim}: {found}" for claim, _, _, found in verdicts.claims(rewards)]
    return "\n".join([markdown_table(header, rows), "", *found])
