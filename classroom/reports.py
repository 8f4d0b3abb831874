"""What grading leaves: tables for the teacher, a report per submission, files for other systems.

grades.csv is written first: whatever is odd about one report, everybody has a row.
"""
import csv
import hashlib
import io
import json
import re
import unicodedata
import zipfile
from pathlib import Path
from statistics import fmean

from .submissions import printable

ONLY_AMONG_OURS = "right, but only with our versions of your other functions"


# Texts that do no harm ----------------------------------------------------------------------------

def cell(value):
    """A cell that no spreadsheet takes for a formula."""
    text = printable(value) if isinstance(value, str) else value
    return f"'{text}" if isinstance(text, str) and text[:1] in tuple("=+-@") else text


def quoted(text):
    """Words in Markdown as they are: in a code span neither HTML nor links count."""
    return "`" + printable(text).replace("`", "'") + "`"


def file_key(identity, used):
    """A name for files of a submission: short, plain, and no other's, in capitals or not."""
    key = re.sub(r"[^\w.() -]", "_", unicodedata.normalize("NFC", identity)).strip(" .")[:40]
    if key != identity or key.casefold() in used:
        key += "-" + hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:8]
    used.add(key.casefold())
    return key


def write_table(path, head, rows):
    with open(path, "w", newline="", encoding="utf-8", errors="replace") as file:
        csv.writer(file).writerows([[cell(value) for value in row] for row in (head, *rows)])


def read_table(path):
    """The rows of a table as dicts, {column: text}; a spreadsheet may have put a BOM first."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        return [{name: value or "" for name, value in row.items() if name is not None}
                for row in csv.DictReader(file)]


# A report -----------------------------------------------------------------------------------------

def lines_of(one, part):
    """[(verdict, title, words)] of the tests of one function."""
    lines = []
    for title, words in one.outcomes[part]:
        verdict = "right" if words is None else "**wrong**"
        if title in one.borrowed.get(part, []):
            verdict = ONLY_AMONG_OURS
        lines.append((verdict, title, words or ""))
    return lines


def heading(part):
    return part.function + (" (optional, not counted)" if part.optional else "")


def report(name, of, one):
    """The report of one submission, in Markdown, for the student."""
    lines = [f"# {name}: {quoted(one.id)}", "", f"{one.points:g} of {of:g} points", ""]
    lines += [quoted(one.problem)] if one.problem else []
    for part in one.outcomes:
        lines += ["", f"## {heading(part)}: {one.scores[part]:g} of {part.points:g}", ""]
        for verdict, title, words in lines_of(one, part):
            lines.append(f"- {verdict}: {title}. {quoted(words)}" if words
                         else f"- {verdict}: {title}")
    lines += [f"\nWon back on {name}: {share:.0%}" for name, share in one.rank.items()]
    return "\n".join(lines) + "\n"


def gradescope(one):
    """The content of Gradescope's results.json. `score` is without the tests of optional parts."""
    tests = []
    for part in one.outcomes:
        told = [" ".join(filter(None, [f"{verdict.strip('*')}: {title}.", printable(words)]))
                for verdict, title, words in lines_of(one, part)]
        tests.append({"name": heading(part), "score": one.scores[part], "max_score": part.points,
                      "output": "\n".join(told), "output_format": "text",
                      "visibility": "visible"})
    return {"score": one.points, "output": printable(one.problem), "output_format": "text",
            "visibility": "visible", "stdout_visibility": "hidden", "tests": tests}


# Tables -------------------------------------------------------------------------------------------

def roster_row(roster, identity):
    """The one row of the roster whose first column is a word of the submission's id, or {}."""
    words = set(re.split(r"[^\w.@-]+|_", identity.casefold())) | {identity.casefold()}
    words |= {word for part in re.split(r"[/ ]", identity.casefold())
              for word in (part, part.partition("-")[2])}        # assignment-username
    rows = [row for row in roster if next(iter(row.values()), "").casefold() in words]
    return rows[0] if len(rows) == 1 else {}


def write_grades(path, grader, results, roster=()):
    """grades.csv: a row for each submission, and for each of the roster who sent none."""
    known = list(roster[0]) if roster else []
    head = [*known, "submission", "points", "of", *[part.marker for part in grader.parts]]
    rows, sent = [], []
    for one in results:
        row = roster_row(roster, one.student or one.id)
        sent.append(row)
        rows.append([*(row.get(name, "") for name in known), one.id, one.points, grader.points,
                     *one.scores.values()])
    for row in roster:
        if row not in sent:
            rows.append([*row.values(), "", 0.0, grader.points, *[0.0] * len(grader.parts)])
    write_table(path, head, rows)


def flags(results, roster=()):
    """[(submission, function, what to look at)] for the teacher."""
    found = []
    for one in results:
        if one.problem:
            found.append((one.id, "", one.problem))
        for part, titles in one.borrowed.items():
            if titles:
                why = f"passes only among our versions of the other functions: {'; '.join(titles)}"
                found.append((one.id, part.function, why))
        if roster and not roster_row(roster, one.student or one.id):
            found.append((one.id, "", "is not in the roster"))
    return found


def write_ranking(path, grader, results):
    ranked = [(one.id, fmean(one.rank.values()), *one.rank.values()) for one in results if one.rank]
    if ranked:
        ranked.sort(key=lambda row: -row[1])
        write_table(path, ["submission", "won back", *grader.baselines["none"]], ranked)


def write_answers(out, keys, results):
    """The written answers, a list of who sent some, and a table for the points of the rubric."""
    listed = []
    for one in results:
        written = one.written()
        for file, data in written.items():
            (out / "answers" / f"{keys[one.id]} {file.lower()}").write_bytes(data)
        listed.append(f"- {quoted(one.id)}: {', '.join(sorted(written)) or 'none'}")
    (out / "answers.md").write_text("\n".join(listed) + "\n", "utf-8", errors="replace")
    if not (out / "rubric.csv").exists():                        # the teacher's entries stay
        write_table(out / "rubric.csv", ["submission", "1", "2"],
                    [(one.id, "", "") for one in results])


def write_feedback(path, keys, results, out):
    """A zip for Moodle's "Upload multiple feedback files in a zip": its own folders, reports in
    them."""
    named = [one for one in results if one.folder]
    if not named:
        return
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in named:
            text = (out / "reports" / f"{keys[one.id]}.md").read_bytes()
            archive.writestr(f"{one.folder}/report.md", text)
    path.write_bytes(data.getvalue())


def write_all(out, grader, results, seed, roster=()):
    """Everything, to a folder. Returns the flags."""
    out, used = Path(out), set()
    for folder in ("reports", "gradescope", "answers"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    write_grades(out / "grades.csv", grader, results, roster)
    flagged = flags(results, roster)
    write_table(out / "flags.csv", ["submission", "function", "what to look at"], flagged)
    (out / "seed.txt").write_text(f"{seed}\nFor you only: who knows it knows the tests.\n", "utf-8")
    keys = {one.id: file_key(one.id, used) for one in results}
    for one in results:
        text = report(grader.name, grader.points, one)
        (out / "reports" / f"{keys[one.id]}.md").write_text(text, "utf-8", errors="replace")
        text = json.dumps(gradescope(one), indent=1)
        (out / "gradescope" / f"{keys[one.id]}.json").write_text(text, "utf-8")
    write_answers(out, keys, results)
    write_feedback(out / "feedback.zip", keys, results, out)
    write_ranking(out / "ranking.csv", grader, results)
    return flagged


def write_totals(out):
    """totals.csv: the points of grades.csv and of rubric.csv, in which a teacher has put them."""
    entered = {row.pop("submission"): row for row in read_table(out / "rubric.csv")}
    rows, head = read_table(out / "grades.csv"), None
    for row in rows:
        marks = entered.get(row["submission"], {})
        try:
            extra = sum(float(mark.replace(",", ".")) for mark in marks.values()
                        if mark and mark.strip())
        except ValueError as error:
            raise ValueError(f"rubric.csv: {row['submission']}: {error}") from error
        row |= {"rubric": extra, "total": round(float(row["points"]) + extra, 2)}
        head = list(row)
    unknown = set(entered) - {row["submission"] for row in rows}
    if unknown:
        raise ValueError(f"rubric.csv: not in grades.csv: {', '.join(sorted(unknown))}")
    write_table(out / "totals.csv", head or [], [row.values() for row in rows])
