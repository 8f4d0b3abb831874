"""What grading leaves for the teacher: tables, a report a submission, and what is alike."""
import csv
import json
import keyword
import re
from itertools import combinations

ALIKE = 0.6                # share of short pieces of code in common that is worth a look
PIECE = 8                  # tokens in a piece


def printable(text):
    """A line of text without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def told(outcomes):
    """A line for each test, right or wrong."""
    return [f"right: {title}" if words is None else f"**wrong**: {title}. {printable(words)}"
            for title, words in outcomes]


def report(name, of, result, seed):
    """The report of one submission, in Markdown."""
    lines = [f"# {name}: {result.id}", "", f"{result.points:g} of {of:g} points (seed {seed})", "",
             f"{printable(result.problem)}"]
    for part, outcomes in result.outcomes.items():
        optional = " (optional, not counted)" if part.optional else ""
        points = f"{result.scores[part]:g} of {part.points:g}"
        lines += ["", f"## {part.function}: {points}{optional}", ""]
        lines += [f"- {line}" for line in told(outcomes)]
    lines += [f"\nWon back on {name}: {share:.0%}" for name, share in result.rank.items()]
    return "\n".join(lines) + "\n"


def gradescope(result):
    """The content of Gradescope's results.json; optional parts are told, and not counted."""
    tests = [{"name": part.function, "score": 0 if part.optional else result.scores[part],
              "max_score": 0 if part.optional else part.points, "output": "\n".join(told(outcomes))}
             for part, outcomes in result.outcomes.items()]
    return {"score": result.points, "output": printable(result.problem), "tests": tests}


def write_table(path, *rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def write_all(out, name, grader, results, seed):
    """grades.csv, and in folders reports, Gradescope's results, written answers."""
    for folder in ("reports", "gradescope", "answers"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    head = ["submission", "points", "of", *(part.marker for part in grader.parts)]
    write_table(out / "grades.csv", head, *(
        [one.id, one.points, grader.points, *one.scores.values()] for one in results))
    ranked = [one for one in results if one.rank]
    if ranked:
        rows = [(one.id, sum(one.rank.values()) / len(one.rank), *one.rank.values())
                for one in ranked]
        write_table(out / "ranking.csv", ["submission", "won back", *ranked[0].rank],
                    *sorted(rows, key=lambda row: -row[1]))
    listed = ["# Written answers", "", "They are no part of the points.", ""]
    for one in results:
        key, written = re.sub(r"[^\w.() -]", "_", one.id), one.submission.written()
        text = report(name, grader.points, one, seed)
        (out / "reports" / f"{key}.md").write_text(text, "utf-8", errors="replace")
        text = json.dumps(gradescope(one), indent=1)
        (out / "gradescope" / f"{key}.json").write_text(text, "utf-8")
        for file, data in written.items():
            (out / "answers" / f"{key} {file}").write_bytes(data)
        listed.append(f"- {one.id}: {', '.join(sorted(written)) or 'none'}")
    (out / "answers.md").write_text("\n".join(listed) + "\n", "utf-8")


# Similarity ---------------------------------------------------------------------------------------

def pieces(text):
    """The short pieces of a program, whatever its names, numbers, comments and layout are."""
    text = re.sub(r'#[^\n]*|""".*?"""', " ", text, flags=re.DOTALL)
    plain = []
    for token in re.findall(r"[^\W\d]\w*|\d[\w.]*|\S", text):
        own = token.isidentifier() and not keyword.iskeyword(token)
        plain.append("x" if own else "0" if token[0].isdigit() else token)
    return {tuple(plain[i:i + PIECE]) for i in range(len(plain) - PIECE + 1)}


def similarity(submissions, handout):
    """[(share, one id, other id)] of pairs that have much in common that the handout has not."""
    common = pieces(handout)
    own = {one.id: pieces(one.source) - common for one in submissions}
    pairs = []
    for one, other in combinations(own, 2):
        least = min(len(own[one]), len(own[other]))
        share = len(own[one] & own[other]) / least if least else 0.0
        if share >= ALIKE:
            pairs.append((round(share, 2), one, other))
    return sorted(pairs, reverse=True)
