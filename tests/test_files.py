"""Tests of reading, finding and downloading files: bad files, a real bad server, the commands."""
import dataclasses
import gzip
import hashlib
import http.server
import io
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made_files import (
    HTML,
    REVIEWS,
    aps,
    census_text,
    covertype,
    eeg,
    har,
    lines_of,
    npy,
    stocks,
    write_covertype,
    zipped,
)

import datasets
from datasets import DataError, MissingData, load
from lab import files

ROOT = Path(__file__).resolve().parent.parent
property_test = settings(deadline=None, derandomize=True, max_examples=40)
pytestmark = pytest.mark.usefixtures("no_cache")


# --- tables of numbers ----------------------------------------------------------------------------

def tables_of(width):
    row = st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=width, max_size=width)
    return st.lists(row, min_size=1, max_size=12)


tables = st.integers(1, 6).flatmap(tables_of)


BAD_INTEGERS = ["x", "1.5", "--1", "1e3", "12345678901", "1,2", "1 2", "", "nan", "1_0"]


@property_test
@given(tables, st.data())
def test_integers_of_any_table_and_the_line_of_any_bad_one(rows, data):
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    sep = data.draw(st.sampled_from([",", " ", ";"]))
    text = lines_of(rows, sep, end) + data.draw(st.sampled_from(["", end]))
    found, line = files.read_numbers("t", text.encode(), len(rows[0]), sep=sep)
    np.testing.assert_array_equal(found, rows)
    assert found.dtype == np.int32 and line == 1
    i, j = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, len(rows[0]) - 1))
    rows[i][j] = data.draw(st.sampled_from(BAD_INTEGERS))
    assume(rows[i] != [""])  # at the end of a file, a blank line is no fault
    above = [["a remark"], [], ["and another"], ["name"] * len(rows[0])]
    text = lines_of(above + rows, end=end).encode()
    with pytest.raises(DataError, match=f"^f.txt, line {i + 5}: .*get it again"):
        files.read_numbers("f.txt", text, len(rows[0]), header="name", sep=",")


@property_test
@given(st.lists(st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3), min_size=1, max_size=8),
       st.data())
def test_reals_of_any_table_and_the_line_of_any_bad_one(rows, data):
    found, _ = files.read_numbers("t", lines_of(rows, "  ").encode(), 3, dtype="float")
    np.testing.assert_array_equal(found, rows)
    i = data.draw(st.integers(0, len(rows) - 1))
    rows[i][1] = data.draw(st.sampled_from(["x", "nan", "inf", "1e999", "1_000", "", "1 2"]))
    with pytest.raises(DataError, match=f"line {i + 1}: "):
        text = lines_of(rows, "\t" if rows[i][1] else " ").encode()
        files.read_numbers("t", text, 3, dtype="float")


def test_a_blank_line_inside_a_table_is_an_error():
    for blank in (b"", b" ", b"\r"):
        with pytest.raises(DataError, match="^t, line 2: "):
            files.read_numbers("t", b"1,2\n" + blank + b"\n3,4\n", 2, sep=",")


# --- readers --------------------------------------------------------------------------------------

def flat(made):
    return {Path(name).name: data for name, data in made.items()}


LAYOUTS = {
    "tree": har(), "flat": flat(har()),
    "gz": {name + ".gz": gzip.compress(data) for name, data in flat(har()).items()},
    "zip": {"UCI HAR Dataset.zip": zipped(har())},
    "zip in zip": {"human+activity+recognition+using+smartphones.zip":
                   zipped({"UCI HAR Dataset.names": b"?", "UCI HAR Dataset.zip": zipped(har())})},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_smartphones_in_every_layout(folder, layout):
    for name, data in LAYOUTS[layout].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    table = datasets.table(datasets.SOURCES["smartphones"], folder)
    inputs = [np.loadtxt(io.BytesIO(data)) for name, data in har().items() if "X_" in name]
    np.testing.assert_array_equal(table.X, np.concatenate(inputs))
    assert table.y.tolist() == [i % 6 for i in range(30)] + [i % 6 for i in range(15)]


@pytest.mark.parametrize("preamble, end", [(0, "\n"), (20, "\r\n")])
def test_scania_with_and_without_preamble(folder, preamble, end):
    (folder / "aps_failure_training_set.csv").write_bytes(aps(preamble, end))
    table = datasets.table(datasets.SOURCES["scania"], folder)
    assert table.X.shape == (8, 170) and table.y.tolist() == [1, 0, 0, 1, 0, 0, 1, 0]
    assert table.X[0, 0] == 0 and table.X[0, 2] == 2130706438.02
    assert table.X[3, 1] == 3001 and table.X[3, 2] == 0


def test_census_is_one_hot_over_the_whole_file(folder):
    (folder / "USCensus1990.data.txt.gz").write_bytes(gzip.compress(census_text()))
    table = datasets.table(datasets.SOURCES["census"], folder)
    body = np.array([row.split(",") for row in census_text().decode().split("\n")[1:]], int)
    columns = np.delete(body, [0, 35], axis=1)
    assert table.levels.tolist() == [len(set(c)) for c in columns.T]
    assert table.y.tolist() == [i % 9 for i in range(30)]
    X = datasets.one_hot(table.X, table.levels)
    assert (X.sum(1) == 67).all()
    blocks = np.split(X, np.cumsum(table.levels)[:-1], axis=1)
    for column, block in zip(columns.T, blocks, strict=True):
        np.testing.assert_array_equal(np.unique(column)[block.argmax(1)], column)
    assert {load("census", 3, seed, folder).dim for seed in range(4)} == {table.levels.sum()}


@pytest.mark.parametrize("name, quote", [
    ("data.csv", '"'), ("Epileptic Seizure Recognition.csv", "")])
def test_epileptic(folder, name, quote):
    (folder / name).write_bytes(eeg(quote))
    table = datasets.table(datasets.SOURCES["epileptic"], folder)
    assert table.X[3, :3].tolist() == [-3, -4, -5] and table.X.shape == (10, 178)
    assert table.y.tolist() == [i % 5 for i in range(10)]


def test_amazon_reads_quotes_newlines_and_skips_empty_reviews(folder):
    (folder / "Amazon_Unlocked_Mobile.csv").write_text(REVIEWS)
    p = load("amazon", data_dir=folder)
    assert p.contexts.shape == (2, 60) and p.contexts.dtype.kind == "i" and p.n_arms == 5
    assert sorted(p.rewards.argmax(1)) == [0, 4]
    tokens = ["great", "phone", ",", "i", "do", "n't", "regret", "it", "!", "bad"]
    assert p.vocabulary == 2 + len(tokens) == p.contexts.max() + 1


# --- bad files ------------------------------------------------------------------------------------

def edit(data, line, change):
    lines = data.split(b"\n")
    lines[line - 1] = change(lines[line - 1])
    return b"\n".join(lines)


JESTER, CENSUS = "jester_data_40jokes_19181users.npy", "USCensus1990.data.txt"
APS, CSV = "aps_failure_training_set.csv", "Amazon_Unlocked_Mobile.csv"
BAD = [  # problem, file, bytes, what the message must say
    ("financial", "raw_stock_contexts", stocks(np.ones((4, 21)))[:-40],
     "line 5: .* columns instead of 21"),
    ("census", CENSUS, census_text().replace(b"dOccup", b"dOther"),
     "line 1: expected a header of 69 names, then rows"),
    ("scania", APS, aps().replace(b",1001,", b",1oo1,"), "line 23: '1oo1' is not a number"),
    ("scania", APS, aps().replace(b"\nneg,", b"\n0.5,", 1), "line 23: unknown class 0.5"),
    ("epileptic", "data.csv", edit(eeg(), 6, lambda row: row[:-1] + b"0"),
     "line 6: unknown class 0, expected 1 to 5"),
    ("amazon", CSV, REVIEWS[:-8].encode(), "line 5: .* columns instead of 6"),
    ("amazon", CSV, REVIEWS.replace(",1,", ",six,").encode(), "line 4: unknown class 'six'"),
    ("jester", JESTER, npy(np.ones((9, 40)))[:-8], "not plain numpy arrays"),
    ("jester", JESTER, npy(np.array([{}, []], object)), "not plain .*allow_pickle=False"),
    ("jester", JESTER, npy(np.full((9, 40), np.nan)), "not finite ratings of 40 jokes"),
    ("covertype", "covtype.data.gz", gzip.compress(covertype())[:-12], "broken archive"),
    ("covertype", "covertype.zip", zipped({"iris.data": b"1"}), "no covtype.data in the archive"),
    ("covertype", "covtype.data", b"\n\n", "line 1: the file is empty"),
    ("covertype", "covtype.data", HTML, "line 1: a web page, not data"),
]


@pytest.mark.parametrize("name, file, data, message", BAD, ids=[case[0] for case in BAD])
def test_a_bad_file_is_named_with_its_line(folder, name, file, data, message):
    (folder / file).write_bytes(data)
    with pytest.raises(DataError, match=f"(?s){file}.*{message}.*get it again") as caught:
        load(name, data_dir=folder)
    assert not isinstance(caught.value, MissingData)


def test_good_files_pass_the_same_way_and_check_names_every_bad_one(folder, capsys):
    """The bad files above are bad for the reason given: without the fault they load."""
    good = {"covtype.data": covertype(), JESTER: npy(np.ones((9, 40))), CENSUS: census_text(),
            "raw_stock_contexts": stocks(np.ones((4, 21))), "data.csv": eeg(), APS: aps(),
            CSV: REVIEWS.encode()}
    for file, data in good.items():
        (folder / file).write_bytes(data)
    names = {case[0] for case in BAD}
    assert len(names) == len(good)
    for name in names:
        assert len(load(name, data_dir=folder)) > 0
    assert datasets.main(["check", "--data-dir", str(folder)]) == 0
    for _, file, data, _ in BAD:
        (folder / file).write_bytes(data)
    capsys.readouterr()
    assert datasets.main(["check", "--data-dir", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines if "BAD: " in line} == names


def test_smartphones_with_a_label_missing(folder):
    for name, data in flat(har()).items():
        (folder / name).write_bytes(data[:-2] if name == "y_test.txt" else data)
    with pytest.raises(DataError, match="y_test.txt, line 14: 14 labels for 15 rows"):
        load("smartphones", data_dir=folder)


def test_a_damaged_bundle_says_how_to_restore_it(tmp_path):
    data = (ROOT / "data" / "statlog.npz").read_bytes()
    path = tmp_path / "statlog.npz"
    for damaged in (data[:-100], data[:1000] + b"x" * 50 + data[1050:], b""):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="statlog.npz.*not plain numpy arrays.*restore it"):
            files.arrays(path, advice="restore it")
    path.unlink()
    with pytest.raises(DataError, match="statlog.npz.*restore it"):
        files.arrays(path, advice="restore it")


# --- where files are looked for -------------------------------------------------------------------

def elevation(data_dir=None):
    return datasets.table(datasets.SOURCES["covertype"], data_dir).X[0, 0]


def test_folders_are_searched_in_order(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("NLTS_DATA", str(tmp_path / "env"))
    message = "covtype.data is not in .*run: python datasets.py fetch covertype"
    for function in (load, datasets.available):
        with pytest.raises(MissingData, match=message):
            function("covertype", data_dir=folder)
    with pytest.raises(MissingData, match="https://www.kaggle.com/.*into .*env"):
        datasets.available("amazon")
    write_covertype(files.folders()[-1], 3, "covtype.data.gz")
    assert elevation(folder) == 3
    write_covertype(tmp_path / "env", 2)
    assert elevation(folder) == 2
    write_covertype(folder, 1)
    assert elevation(folder) == 1 and elevation() == 2
    assert datasets.available("Covertype", folder)


# --- downloads ------------------------------------------------------------------------------------

class Server(http.server.ThreadingHTTPServer):
    """Serves `data` on the loopback interface, well or badly."""
    daemon_threads = True

    def __init__(self, data):
        super().__init__(("127.0.0.1", 0), Handler)
        self.data, self.behaviour, self.asked = data, "good", 0
        often = {"poll_interval": 0.02}
        threading.Thread(target=self.serve_forever, kwargs=often, daemon=True).start()

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked += 1
        data, how = self.server.data, self.server.behaviour
        if how == "404":
            return self.send_error(404)
        if how == "page":
            data = HTML
        if how == "wrong bytes":
            data = data[:50] + b"7" + data[51:]
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if how == "silent":
            time.sleep(0.6)
        else:
            self.wfile.write(data[:100] if how == "cut" else data)

    def log_message(self, *args):
        pass


BIG = covertype(300)


@pytest.fixture
def server(monkeypatch):
    server = Server(BIG)
    source = dataclasses.replace(datasets.SOURCES["covertype"], url=server.url("covtype.data"),
                                 rows=300, sha256=hashlib.sha256(BIG).hexdigest())
    monkeypatch.setitem(datasets.SOURCES, "covertype", source)
    yield server
    server.shutdown()
    server.server_close()


def test_fetch_downloads_what_is_missing_and_check_compares_its_checksum(server, folder, capsys):
    where = ["--data-dir", str(folder)]
    for _ in range(2):
        assert datasets.main(["fetch", "Covertype", *where]) == 0
        assert "covertype: 300 rows are there" in capsys.readouterr().out
    assert server.asked == 1  # the second time it is there
    assert [p.name for p in folder.iterdir()] == ["covtype.data"]
    assert (folder / "covtype.data").read_bytes() == BIG
    assert datasets.main(["check", *where]) == 0
    assert "covtype.data, 300 of 300 rows are good" in capsys.readouterr().out
    (folder / "covtype.data").write_bytes(BIG.replace(b"299", b"298", 1))
    assert datasets.main(["check", *where]) == 1
    bad, = (line for line in capsys.readouterr().out.splitlines() if "BAD: " in line)
    assert bad.startswith("covertype") and "sha256" in bad


@pytest.mark.parametrize("behaviour, message", [
    ("404", "HTTP Error 404: Not Found; check connection and address"),
    ("cut", "100 bytes read.*run it again"),
    ("wrong bytes", "sha256 .* instead of"),
    ("page", "a web page, not data"),
    ("silent", "timed out")])
def test_a_failed_download_leaves_the_old_file_and_nothing_else(server, folder, behaviour, message):
    server.behaviour = behaviour
    (folder / "covtype.data").write_text("old")
    with pytest.raises(DataError, match=f"covtype.data.*{message}"):
        datasets.fetch(datasets.SOURCES["covertype"], folder, timeout=0.3)
    assert [p.name for p in folder.iterdir()] == ["covtype.data"]
    assert (folder / "covtype.data").read_text() == "old"


def test_fetch_refuses_a_shorter_table_of_an_unknown_checksum(server, folder):
    source = dataclasses.replace(datasets.SOURCES["covertype"], sha256="", rows=301)
    with pytest.raises(DataError, match="not all 301 rows; try again later"):
        datasets.fetch(source, folder)
    assert not list(folder.iterdir())


def test_fetch_an_archive(server, folder, monkeypatch):
    (name, server.data), = LAYOUTS["zip in zip"].items()
    source = dataclasses.replace(datasets.SOURCES["smartphones"], url=server.url(name), rows=45)
    monkeypatch.setitem(datasets.SOURCES, "smartphones", source)
    monkeypatch.setenv("NLTS_DATA", str(folder / "new"))
    assert datasets.main(["fetch", "smartphones"]) == 0 and len(load("smartphones")) == 45
    assert [p.name for p in (folder / "new").iterdir()] == [name]


def test_fetch_says_when_nobody_answers_and_what_a_person_must_do(server, folder, capsys):
    dead = dataclasses.replace(datasets.SOURCES["covertype"], url="http://127.0.0.1:9/covtype.data")
    with pytest.raises(DataError, match="127.0.0.1:9.*(?i:refused).*check connection"):
        datasets.fetch(dead, folder)
    assert datasets.main(["fetch", "amazon", "statlog", "--data-dir", str(folder)]) == 1
    out, err = capsys.readouterr()
    assert "https://www.kaggle.com/" in err and "statlog: 43,500 rows" in out
    (folder / "file").write_text("not a folder")
    assert datasets.main(["fetch", "covertype", "--data-dir", str(folder / "file")]) == 1


# --- commands -------------------------------------------------------------------------------------

def test_list_says_where_everything_is(folder, capsys):
    write_covertype(folder, 5)
    (folder / "data.csv").write_bytes(HTML)
    assert datasets.main(["--data-dir", str(folder)]) == 1
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert set(lines) == {"problem", *datasets.NAMES}
    assert lines["statlog"].split() == ["statlog", "43,500", "9", "7", "78.4%", "bundled"]
    assert lines["wheel-0.5"].split() == ["wheel-0.5", "any", "2", "5", "-", "synthetic"]
    assert lines["adult"].split()[1:5] == ["45,222", "90", "2", "75.2%"]
    path = str(folder / "covtype.data")
    assert lines["covertype"].split()[1:] == ["3", "54", "7", "33.3%", path]
    assert lines["census"].split()[1:5] == ["2,458,285", "377", "9", "-"]
    assert "missing; run: python datasets.py fetch census" in lines["census"]
    how = "missing; download Amazon_Unlocked_Mobile.csv from https://www.kaggle.com/"
    assert how in lines["amazon"]
    assert "BAD: " in lines["epileptic"] and "a web page" in lines["epileptic"]


@pytest.mark.parametrize("argv", [
    ["fetch"], ["fetch", "iris"], ["fetch", "wheel-0.5"], ["check", "adult"], ["unknown"]])
def test_bad_commands(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        datasets.main(argv)
    assert stop.value.code == 2 and "usage" in capsys.readouterr().err


def test_the_command_runs_as_a_script():
    done = subprocess.run([sys.executable, "datasets.py", "--help"], cwd=ROOT, capture_output=True,
                          text=True)
    assert done.returncode == 0 and "fetch" in done.stdout
