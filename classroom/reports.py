"""What grading leaves for the teacher: tables, a report a submission, and what is alike."""
import csv
import json
import keyword
import re
from itertools import combinations

ALIKE = 0.6                # share of short pieces of code in common that is worth a look
PIECE = 8                  # tokens in a piece


def file_name(identity):
    """A submission's id as a file name."""
    return re.sub(r"[^\w.() -]", "_", identity)


def report(name, grader, result, seed):
    """The report of one submission, in Markdown."""
    lines = [f"# {name}: {result.id}", "",
             f"{grader.total(result):g} of {grader.points:g} points "
             f"(seed {seed}, sha256 of the file {result.digest}...)"]
    if result.problem:
        lines += ["", f"**{result.problem}**"]
    for part in grader.parts:
        optional = " (optional, not counted)" if part.optional else ""
        points = f"{result.scores[part.marker]:g} of {part.points:g}"
        lines += ["", f"## {part.function}: {points}{optional}", ""]
        for title, words in result.outcomes[part.marker]:
            lines.append(f"- right: {title}" if words is None else f"- **wrong**: {title}  ")
            if words is not None:
                lines.append("  " + printable(words))
    for name, share in result.rank.items():
        lines += ["", f"Won back on {name}: {share:.0%}"]
    return "\n".join(lines) + "\n"


def printable(text):
    """A line of text without control characters."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def gradescope(grader, result):
    """The content of Gradescope's results.json."""
    tests = []
    for part in grader.parts:
        outcomes = result.outcomes[part.marker]
        told = [f"{'right' if words is None else 'wrong'}: {title}. {printable(words or '')}"
                for title, words in outcomes]
        worth = 0 if part.optional else part.points
        score = 0 if part.optional else result.scores[part.marker]
        tests.append({"name": part.function, "score": score, "max_score": worth,
                      "output": "\n".join(told)})
    return {"score": grader.total(result), "output": printable(result.problem), "tests": tests}


def write_all(out, name, grader, results, seed):
    """grades.csv, and in folders reports, Gradescope's results, printed output, written answers."""
    for folder in ("reports", "gradescope", "printed", "answers"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    with open(out / "grades.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["submission", "points", "of", *(part.marker for part in grader.parts)])
        for result in results:
            scores = [result.scores[part.marker] for part in grader.parts]
            table.writerow([result.id, grader.total(result), grader.points, *scores])
    listed = ["# Written answers", "", "They are no part of the points.", ""]
    for result in results:
        key = file_name(result.id)
        (out / "reports" / f"{key}.md").write_text(report(name, grader, result, seed), "utf-8")
        text = json.dumps(gradescope(grader, result), indent=1)
        (out / "gradescope" / f"{key}.json").write_text(text, "utf-8")
        if printed := "".join(result.log):
            (out / "printed" / f"{key}.txt").write_text(printed, "utf-8", errors="replace")
        for file, data in result.written.items():
            (out / "answers" / f"{key} {file}").write_bytes(data)
        listed.append(f"- {result.id}: {', '.join(sorted(result.written)) or 'none'}")
    ranked = [result for result in results if result.rank]
    if ranked:
        write_ranking(out / "ranking.csv", ranked)
    (out / "answers.md").write_text("\n".join(listed) + "\n", "utf-8")


def write_ranking(path, results):
    """The open assignment: the share of the lost reward that was won back, best first."""
    rows = [(result.id, sum(result.rank.values()) / len(result.rank), *result.rank.values())
            for result in results]
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["submission", "won back", *results[0].rank])
        table.writerows(sorted(rows, key=lambda row: -row[1]))


# Similarity ---------------------------------------------------------------------------------------

def pieces(text):
    """The short pieces of a program, whatever its names, numbers, comments and layout are."""
    text = re.sub(r'#[^\n]*|""".*?"""', " ", text, flags=re.DOTALL)
    tokens = re.findall(r"[^\W\d]\w*|\d[\w.]*|\S", text)
    plain = []
    for token in tokens:
        if token[0].isdigit():
            plain.append("0")
        elif token.isidentifier() and not keyword.iskeyword(token):
            plain.append("x")
        else:
            plain.append(token)
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


def write_similarity(path, pairs):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("share", "submission", "other"), *pairs])
