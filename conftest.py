"""What all tests share: one thread for linear algebra, the same examples each time, the modules."""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import importlib
import sys

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile("default", deadline=None, database=None, derandomize=True,
                          max_examples=40, suppress_health_check=[HealthCheck.too_slow])
# for planted bugs: whether a property fails, not its smallest example
settings.register_profile("planted", settings.get_profile("default"), phases=[Phase.generate],
                          report_multiple_bugs=False)
settings.load_profile("default")


@pytest.fixture(autouse=True)
def own_modules():
    """After each test `import nlts` is ours again: graders load a student's under this name."""
    ours = importlib.import_module("nlts")
    yield
    sys.modules["nlts"] = ours


@pytest.fixture(scope="session")
def nlts():
    """The module under test, as an argument: tests/test_planted.py gives a check a broken one."""
    return importlib.import_module("nlts")


@pytest.fixture(scope="session")
def beyond():
    return importlib.import_module("nlts_beyond")


@pytest.fixture
def no_cache(monkeypatch, tmp_path):
    """No data but the bundled: the user's own folders are neither read nor written."""
    monkeypatch.delenv("NLTS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def folder(no_cache, monkeypatch, tmp_path):
    """An empty folder for data, where it is looked for."""
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("NLTS_DATA", str(path))
    return path
