"""What grading leaves: one table, one report per student, and the manifest.

grades.csv is written first: whatever is odd about one report, everybody has a row.
"""
import csv
import re
from urllib.parse import quote

from .submissions import printable

WAITS = "right, but only with our versions of functions that are not right either"


# Texts that do no harm ----------------------------------------------------------------------------

def cell(value):
    """A cell that no spreadsheet takes for a formula, also one that splits at ";" or at tabs."""
    if not isinstance(value, str):
        return value
    text = re.sub(r"[;\t]", ",", printable(value))
    return re.sub(r"(^|,)(\s*)([=+\-@])", r"\1\2'\3", text)


def quoted(text):
    """Words in Markdown as they are: in a code span neither HTML nor links count."""
    return "`" + printable(text).replace("`", "'") + "`"


def place(path):
    """A path in a table, to be read again: odd characters are quoted as in a URL."""
    return quote(path, "/ ()~:\\", errors="surrogateescape")


def write_table(path, rows):
    """Write rows of cells."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[cell(value) for value in row] for row in rows])


def file_name(number, identity):
    """The name of a report: short, plain, and no other's."""
    plain = re.sub(r"[^\w.() -]", "_", identity)[:40].strip(" .")
    return f"{number:03} {plain}.md"


# A report -----------------------------------------------------------------------------------------

def report(name, of, submission):
    """The report of one submission, in Markdown, for the student."""
    lines = [f"# {name}: {quoted(submission.id)}", "", f"{submission.points:g} of {of:g} points"]
    if submission.held:
        lines[-1] += f"; {submission.held:g} more wait until your teacher has looked at them"
    lines += ["", f"Graded: {quoted(submission.main)}" if submission.main else ""]
    lines += [f"- {quoted(note)}" for note in submission.notes]
    lines += [quoted(submission.problem)] if submission.problem else []
    for part, outcomes in submission.outcomes.items():
        lines += ["", f"## {part.function}: {submission.scores[part]:g} of {part.points:g}", ""]
        for title, failure in outcomes:
            verdict = "right" if failure is None else "**wrong**"
            if title in submission.helped.get(part, []):
                verdict = WAITS
            lines.append(f"- {verdict}: {title}" + (f". {quoted(failure)}" if failure else ""))
    lines += [f"\nWon back on {name}: {share:.0%}" for name, share in submission.rank.items()]
    if answers := submission.answers():
        lines += ["", "## Written answers", ""]
        lines += [f"    {printable(line)}" for line in answers.splitlines()]     # a block of code
    return "\n".join(lines) + "\n"


def write_all(out, grader, results, seed):
    """Everything, to a folder: grades.csv, reports/, manifest.csv and seed.txt."""
    (out / "reports").mkdir(parents=True, exist_ok=True)
    sets = sorted({name for one in results for name in one.rank})
    table = [["submission", "points", "of", "waits", *[part.marker for part in grader.parts],
              *[f"won back on {name}" for name in sets], "look at"]]
    table += [[one.id, one.points, grader.points, one.held, *one.scores.values(),
               *[round(one.rank.get(name, 0.0), 3) for name in sets], " | ".join(one.flags)[:2000]]
              for one in results]
    write_table(out / "grades.csv", table)
    manifest = [["student", "path", "file", "why", "confirmed"]]
    manifest += [[one.id, place(path), place(one.main), one.why, "yes" if one.confirmed else ""]
                 for one in results for path in one.paths]
    write_table(out / "manifest.csv", manifest)
    (out / "seed.txt").write_text(f"{seed}\nFor you only: who knows it knows the tests.\n", "utf-8")
    for number, one in enumerate(results, 1):
        path = out / "reports" / file_name(number, one.id)
        path.write_text(report(grader.name, grader.points, one), "utf-8", errors="replace")
