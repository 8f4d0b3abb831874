"""What grading leaves for the teacher: tables, a report a submission, and what is alike."""
import csv
import json
import keyword
import re
from itertools import combinations
from statistics import fmean

from .catalogue import sealed
from .submissions import printable

ALIKE = 0.6                # share of short pieces of code in common that is worth a look
PIECE = 8                  # tokens in a piece


def gradescope(one):
    """The content of Gradescope's results.json. `score` is without the tests of optional parts."""
    tests = []
    for part, outcomes in one.outcomes.items():
        told = [f"- **wrong**: {title}. {printable(words)}" if words else f"- right: {title}"
                for title, words in outcomes]
        optional = " (optional, not counted)" if part.optional else ""
        tests.append({"name": part.function + optional, "score": one.scores[part],
                      "max_score": part.points, "output": "\n".join(told)})
    return {"score": one.points, "output": printable(one.problem), "tests": tests}


def report(name, of, one, seed):
    """The report of one submission, in Markdown."""
    lines = [f"# {name}: {one.id}", "", f"{one.points:g} of {of:g} points (seed {seed})", "",
             printable(one.problem)]
    for test in gradescope(one)["tests"]:
        points = f"{test['score']:g} of {test['max_score']:g}"
        lines += ["", f"## {test['name']}: {points}", "", test["output"]]
    lines += [f"\nWon back on {name}: {share:.0%}" for name, share in one.rank.items()]
    return "\n".join(lines) + "\n"


def write_table(path, head, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])


def write_all(out, name, grader, results, seed):
    """Tables, and in folders reports, Gradescope's results, written answers; the pairs alike."""
    head = ["submission", "points", "of", *(part.marker for part in grader.parts)]
    rows = [(one.id, one.points, grader.points, *one.scores.values()) for one in results]
    listed = ["# Written answers", "", "They are no part of the points.", ""]
    for folder in ("reports", "gradescope", "answers"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for one in results:
        key, written = re.sub(r"[^\w.() -]", "_", one.id), one.written()
        text = report(name, grader.points, one, seed)
        (out / "reports" / f"{key}.md").write_text(text, "utf-8", errors="replace")
        text = json.dumps(gradescope(one), indent=1)
        (out / "gradescope" / f"{key}.json").write_text(text, "utf-8")
        for file, data in written.items():
            (out / "answers" / f"{key} {file}").write_bytes(data)
        listed.append(f"- {one.id}: {', '.join(sorted(written)) or 'none'}")
    (out / "answers.md").write_text("\n".join(listed) + "\n", "utf-8")
    write_table(out / "grades.csv", head, rows)
    ranked = [(one.id, fmean(one.rank.values()), *one.rank.values()) for one in results if one.rank]
    if ranked:
        ranked.sort(key=lambda row: -row[1])
        head = ["submission", "won back", *grader.baselines["none"]]
        write_table(out / "ranking.csv", head, ranked)
    alike = similarity(results, sealed(name))
    write_table(out / "similarity.csv", ["share", "submission", "other"], alike)
    return alike


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
        share = round(len(own[one] & own[other]) / max(least, 1), 2)
        if share >= ALIKE:
            pairs.append((share, one, other))
    return sorted(pairs, reverse=True)
