"""The tests of check.py for pytest, with a marker for each function: python -m pytest -m MARKER."""
import check
import pytest

CASES = [pytest.param(marker, i, id=f"{marker}: {test[0]}", marks=getattr(pytest.mark, marker))
         for marker, part in check.SAVED["parts"].items() for i, test in enumerate(part["tests"])]


@pytest.mark.parametrize("marker, i", CASES)
def test_step(marker, i):
    _, words = check.outcomes(marker)[i]
    assert words is None, words
