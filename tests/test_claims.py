"""Tables of the pages: the paper's claims, a row each, and where it fails, a row per place."""
import json

import numpy as np
import pytest
from made_results import made_up

from lab import pages, report, results
from lab.options import Options


@pytest.mark.parametrize(("signs", "cells"), [
    ({"": [1, 1]}, ["2 of 2", "", "holds"]),
    ({"": [0]}, ["0 of 1", "", "unclear"]),
    ({"": [0, -1]}, ["0 of 2, opposite 1", "", "does not hold"]),
    ({"printed": [1, 0, -1], "both-priors": [1, 1, 1]},
     ["1 of 3, opposite 1", "3 of 3", "holds in part"]),
    ({"both-priors": [1]}, ["", "1 of 1", "holds"]),
])
def test_a_verdict_is_what_is_certain(signs, cells):
    *counts, verdict = cells
    row = report.claim_row("x", "Sec. 4", "yes", signs, 10)
    assert row == ["x", "Sec. 4", "yes", *counts, 10, verdict]


def test_rows_come_in_the_order_of_the_paper(tmp_path):
    for name in ("wheel", "forgetting"):
        row = report.claim_row(name, "", "", {"": [1]}, 10)
        (tmp_path / f"{name}.claims.json").write_text(json.dumps([row]))
    said, _, *table = pages.claims_table(tmp_path).splitlines()
    assert said == "Of 2 claims of the paper 2 hold."
    rows = table[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == ["forgetting", "wheel"]


def test_hard_places_are_told_in_percent_of_the_optimum(tmp_path):
    """4,500 of 5,000 is 90 %; other algorithms and other settings do not count."""
    def write(command, sets, gains):
        found = made_up(sets, gains, key="", task="")
        (tmp_path / f"{command}.jsonl").write_text("".join(map(results.as_line, found)))

    gains = dict.fromkeys(pages.COMPARED, 500) | {"carried": 250}
    write("equal", ("statlog", "adult"), gains | {"printed": -2000})
    write("wheel", ("wheel-0.5", "wheel-0.3"),
          {f"{name}/equal settings": gain for name, gain in gains.items()} | {"linear": -2000})
    rows = [row.strip("| ").split(" | ") for row in pages.hard_places(tmp_path).splitlines()[2:]]
    assert [row[0] for row in rows] == ["rows in random order", "the worst run of each data set",
                                        "wheel, δ = 0.5", "wheel, δ = 0.3"]
    for row in (rows[0], *rows[2:]):
        shares, errors = np.transpose([cell.split(" ± ") for cell in row[1:-1]]).astype(float)
        # rewards have an sd of 2 %: within 5 standard errors
        assert shares == pytest.approx([90, 90, 90, 90, 85, 90], abs=5 * 2 / np.sqrt(8))
        assert (errors > 0.2).all() and (errors < 1.5).all() and row[-1] == "8 runs"
    means = [cell.split(" ± ")[0] for cell in rows[0][1:-1]]
    assert (np.array(rows[1][1:], float) < np.array(means, float)).all()


def test_the_command_fills_marked_blocks_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pages, "HERE", tmp_path)
    page = "Before.\n<!-- {}a.txt: part 1 -->\n{}\n<!-- end -->\nAfter."
    (tmp_path / "figures").mkdir()
    (tmp_path / "README.md").write_text(page.format("figures/", "old"))
    (tmp_path / "figures/README.md").write_text(
        page.format("", "old") + "\n<!-- hard.md -->\n<!-- end -->")
    (tmp_path / "figures/a.txt").write_text("Two\nlines.\n\nA table\n")
    report.save(Options("results", out=tmp_path / "figures"), pages, pages.measure(None))
    assert (tmp_path / "README.md").read_text() == page.format("figures/", "Two lines.")
    filled = (tmp_path / "figures/README.md").read_text()
    assert filled.startswith(page.format("", "Two lines.")) and "| percent of" in filled
