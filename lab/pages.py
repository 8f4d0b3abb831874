"""The command `results`: numbers of README.md and figures/README.md, from files of results."""
import json
import re
from collections import Counter

import numpy as np

from lab.options import HERE
from lab.report import markdown_table, runs_of, with_error
from lab.results import complete_runs, read
from lab.statistics import grouped, mean_over_sets

PAGES = "README.md", "figures/README.md"
CLAIMED = "forgetting", "table", "depth", "amazon", "wheel", "sanity"    # commands with claims
HEADER = ("the paper's claim", "where", "in the paper", "as printed", "smallest solution", "runs",
          "verdict")
VERDICTS = {"holds": "hold", "holds in part": "hold in part", "unclear": "are unclear",
            "does not hold": "do not hold"}
HARD = {  # where our prior or limited memory fails: a command, and which of its results
    "rows in random order": ("equal", {}),
    "rows that drift": ("equal-drift", {}),
    **{f"wheel, δ = {delta}": ("wheel", {"dataset": f"wheel-{delta}", "variant": "equal settings"})
       for delta in (0.5, 0.3, 0.1)},
    "Amazon": ("amazon", {"variant": "equal settings"}),
}
COMPARED = "linear", "neural-linear", "no-prior", "both-priors", "carried", "greedy"
BLOCK = re.compile(
    r"<!-- ([\w./-]+\.(?:txt|md))(?:: part (\d))? -->\n.*?<!-- end -->", re.DOTALL)


def measure(options):
    """{page: its text} with all blocks filled."""
    for name, table in (("all-claims.md", claims_table), ("hard.md", hard_places)):
        (HERE / "figures" / name).write_text(table(HERE / "figures"), encoding="utf-8")
    return {str(HERE / name): filled(HERE / name) for name in PAGES}


def filled(path):
    """Fill each marked block of a page with the file that it names, or with a part of it."""
    def fill(match):
        name, part = match.groups()
        mark = f"{name}: part {part}" if part else name
        return f"<!-- {mark} -->\n{content(path.parent / name, part)}\n<!-- end -->"

    return BLOCK.sub(fill, path.read_text(encoding="utf-8"))


def content(source, part=None):
    """The text of a block. Empty lines separate the parts of a file; the first part of a report is
    its answer in sentences, the others are tables."""
    if not source.exists():
        return "*Not measured yet.*"
    text = source.read_text(encoding="utf-8").strip("\n")
    if part:
        text = text.split("\n\n")[int(part) - 1]
    if source.suffix == ".md":
        return text
    return text.replace("\n", " ") if part == "1" else f"```\n{text}\n```"


def claims_table(folder):
    """How many of the paper's claims hold, and a row per claim, for commands that were played."""
    found = [folder / f"{name}.claims.json" for name in CLAIMED]
    rows = [row for path in found if path.exists() for row in json.loads(path.read_text())]
    verdicts = Counter(row[-1] for row in rows)
    words = ", ".join(f"{verdicts[verdict]} {text}" for verdict, text in VERDICTS.items()
                      if verdict in verdicts)
    return f"Of {len(rows)} claims of the paper {words}.\n\n{markdown_table(HEADER, rows)}"


def hard_places(folder):
    """Rewards at equal settings in percent of the optimum, means over data sets; for `equal`, with
    and without drift, the worst runs, too."""
    rows = []
    for place, (command, having) in HARD.items():
        results = [result | {"share": 100 * result["reward"] / result["optimal"]}
                   for result in read(folder / f"{command}.jsonl")
                   if having.items() <= result.items() and result["algorithm"] in COMPARED]
        results = complete_runs(results)
        if not results:
            continue
        shares = grouped(results, "algorithm", "dataset", value="share")
        means = (with_error(*mean_over_sets(shares[name]), 1) if name in shares else ""
                 for name in COMPARED)
        rows.append([place, *means, runs_of(results)])
        if not having:
            worst = (f"{np.mean([x.min() for x in shares[name].values()]):.1f}"
                     for name in COMPARED)
            rows.append(["the worst run of each data set", *worst, ""])
    return markdown_table(["percent of the optimum", *COMPARED, ""], rows)


def report(pages):
    """Which pages were filled."""
    return f"filled: {', '.join(PAGES)}"


def files(pages):
    """The pages, each under its path."""
    return pages
