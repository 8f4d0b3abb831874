"""The table of the paper's claims: a row per claim, from what each command found certain."""
import json

import pytest

from lab import pages, report


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
    rows = pages.claims(tmp_path).splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == ["forgetting", "wheel"]
