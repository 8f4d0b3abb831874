"""Every planted bug must be caught by the tests of nlts.py that are named with it."""
import pytest

import assignments
import test_nlts


def run_test(name):
    """Call a test of test_nlts.py by its pytest name; a property on 20 seeds, without search for the smallest one."""
    name, _, parameters = name.partition("[")
    test = getattr(test_nlts, name)
    if hasattr(test, "hypothesis"):
        for seed in range(20):
            test.hypothesis.inner_test(seed)
    else:
        test(*parameters.rstrip("]").split("-", 1)) if parameters else test()


@pytest.mark.parametrize("bug, test", [(bug, test) for bug in assignments.BUGS for test in assignments.BUGS[bug].caught_by])
def test_planted_bug_is_caught(bug, test, monkeypatch):
    monkeypatch.setattr(test_nlts, "nlts", assignments.import_source(assignments.with_bug(bug), "nlts_with_bug"))
    with pytest.raises(AssertionError):
        run_test(test)


@pytest.mark.parametrize("test", sorted({test for bug in assignments.BUGS.values() for test in bug.caught_by}))
def test_the_right_program_passes(test):
    run_test(test)
