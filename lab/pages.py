"""The pages with results: numbers come from the results files, none is typed by hand."""
import re

from lab import paper, verdicts
from lab.runs import HERE, read_lines
from lab.text import markdown_table, mean_sd

BLOCK = re.compile(r"<!-- ([\w./-]+\.(?:txt|md)) -->\n.*?<!-- end -->", re.DOTALL)
COLUMNS = {"both-priors": "the paper's method", "carried": "ours",
           "neural-linear": "full memory", "no-prior": "no prior"}


def results(o):
    """Write figures/summary.md, then fill the marked blocks of figures/README.md and README.md."""
    lines = read_lines(o.out / "table.jsonl")
    if lines:
        (o.out / "summary.md").write_text(summary(newest(lines)) + "\n")
    for path in (o.out / "README.md", HERE / "README.md"):
        if path.exists():
            path.write_text(filled(path))
            print(f"filled: {path.relative_to(HERE) if path.is_relative_to(HERE) else path}")


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


def newest(lines):
    """The lines of each data set and algorithm that were played with the newest configuration."""
    last = {(line["dataset"], line["algorithm"]): line["config"] for line in lines}
    unique = {(line["dataset"], line["algorithm"], line["run"]): line for line in lines
              if last[line["dataset"], line["algorithm"]] == line["config"]}
    return sorted(unique.values(), key=lambda line: line["run"])


def summary(lines):
    """The table of README.md: the paper's method with its number, ours, full memory, no prior."""
    rewards = verdicts.by_dataset(lines)
    rows = []
    for d, own in rewards.items():
        theirs = paper.number(d, "both-priors")
        rows.append([verdicts.name_of(d), "{:.0f} ± {:.0f}".format(*theirs) if theirs else "",
                     *(mean_sd(own[name]) if name in own else "" for name in COLUMNS)])
    runs = max(line["run"] for line in lines) + 1
    steps = max(line["steps"] for line in lines)
    header = ["reward", "the paper's number", *COLUMNS.values()]
    parts = [markdown_table(header, rows),
             f"Mean ± standard deviation of up to {runs} runs of {steps} steps."]
    whole = verdicts.complete(rewards)
    if whole:
        header, rows, _ = verdicts.claims(whole)
        parts.append(markdown_table(header, rows))
    return "\n\n".join(parts)
