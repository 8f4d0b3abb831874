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
    eeg,
    har,
    lines_of,
    npy,
    write_covertype,
    zipped,
)

import datasets
from datasets import DataError, MissingData, load
from lab import fetch, files

ROOT = Path(__file__).resolve().parent.parent
property_test = settings(deadline=None, max_examples=40)
pytestmark = pytest.mark.usefixtures("no_cache")


def cache_dir():
    """The per-user folder for downloads and parsed tables."""
    return datasets.folders()[-1]


def leftovers():
    """Files in the per-user cache."""
    return [p.name for p in cache_dir().rglob("*") if p.is_file()]


# --- readers --------------------------------------------------------------------------------------

def tables_of(width):
    row = st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=width, max_size=width)
    return st.lists(row, min_size=1, max_size=12)


tables = st.integers(1, 6).flatmap(tables_of)


@property_test
@given(tables, st.sampled_from([",", " ", ";"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_integers_of_any_table(rows, sep, end, last):
    data = (lines_of(rows, sep, end) + end * last).encode()
    found, line = files.read_numbers("t", data, len(rows[0]), sep=sep)
    np.testing.assert_array_equal(found, rows)
    assert found.dtype == np.int32 and line == 1


BAD_INTEGERS = ["x", "1.5", "--1", "-", "1-", "1e3", "12345678901", "1,2", "1 2", "", "nan", "1_0"]


@property_test
@given(tables, st.data())
def test_integers_names_the_line_of_any_bad_field(rows, data):
    i, j = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, len(rows[0]) - 1))
    rows = [list(row) for row in rows]
    rows[i][j] = data.draw(st.sampled_from(BAD_INTEGERS))
    assume(rows[i] != [""])  # at the end of a file, a blank line is no fault
    above = [["a remark"], [], ["and another"], ["name"] * len(rows[0])]
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = lines_of(above + rows, end=end).encode()
    with pytest.raises(DataError, match=f"^f.txt, line {i + 5}: .*get it again"):
        files.read_numbers("f.txt", text, len(rows[0]), header="name", sep=",")


@property_test
@given(st.lists(st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3), min_size=1, max_size=8),
       st.data())
def test_reals_reads_numbers_and_names_bad_lines(rows, data):
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


@pytest.mark.parametrize("layout", ["tree", "flat", "gz", "zip", "zip in zip"])
def test_smartphones_in_every_layout(folder, layout):
    made = har()
    if layout == "tree":
        for name, data in made.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    elif layout in ("flat", "gz"):
        for name, data in made.items():
            name = Path(name).name
            (folder / (name if layout == "flat" else name + ".gz")).write_bytes(
                data if layout == "flat" else gzip.compress(data))
    elif layout == "zip":
        (folder / "UCI HAR Dataset.zip").write_bytes(zipped(made))
    else:
        inner = {"UCI HAR Dataset.names": b"about", "UCI HAR Dataset.zip": zipped(made)}
        (folder / "human+activity+recognition+using+smartphones.zip").write_bytes(zipped(inner))
    table = datasets.table(datasets.SOURCES["smartphones"], folder)
    inputs = [np.loadtxt(io.BytesIO(data)) for name, data in made.items() if "X_" in name]
    expected = np.concatenate(inputs)
    np.testing.assert_array_equal(table.X, expected)
    assert table.y.tolist() == [i % 6 for i in range(30)] + [i % 6 for i in range(15)]
    p = load("smartphones", 45, data_dir=folder)
    assert (p.dim, p.n_arms) == (561, 6)


@pytest.mark.parametrize("preamble", [0, 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_scania_with_and_without_preamble(folder, preamble, end):
    (folder / "aps_failure_training_set.csv").write_bytes(aps(preamble, end=end))
    table = datasets.table(datasets.SOURCES["scania"], folder)
    assert table.X.shape == (8, 170) and table.y.tolist() == [1, 0, 0, 1, 0, 0, 1, 0]
    assert table.X[0, 0] == 0 and table.X[0, 2] == 2130706438.02
    assert table.X[3, 1] == 3001 and table.X[3, 2] == 0
    assert load("scania", data_dir=folder).dim == 170


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
    (folder / name).write_bytes(eeg(quote=quote))
    table = datasets.table(datasets.SOURCES["epileptic"], folder)
    assert table.X[3, :3].tolist() == [-3, -4, -5] and table.X.shape == (10, 178)
    assert table.y.tolist() == [i % 5 for i in range(10)]


def test_amazon_reads_quotes_newlines_and_skips_empty_reviews(folder):
    (folder / "Amazon_Unlocked_Mobile.csv").write_text(REVIEWS)
    p = load("amazon", data_dir=folder)
    assert p.contexts.shape == (2, 60) and p.contexts.dtype.kind == "i" and p.n_arms == 5
    assert sorted(p.rewards.argmax(1)) == [0, 4] and p.vocabulary == 2 + 10 == p.contexts.max() + 1


def reviewed(texts, length=60):
    """The word ids of some reviews, and how many there are."""
    X = np.array(texts, object)[:, None]
    p = datasets.review("amazon", X, np.zeros(len(texts), int), 5, None, length)
    return p.contexts.tolist(), p.vocabulary


def test_words_have_apostrophes_and_marks_are_words():
    found, vocabulary = reviewed(["Great phone,\nI DON'T regret it!! 4G", "it :) don't!"], 11)
    assert found == [[2, 3, 4, 5, 6, 7, 8, 9, 9, 10, 0], [8, 6, 9] + [0] * 8]
    assert vocabulary == 11


@property_test
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), min_size=1, max_size=6),
       st.integers(1, 8))
def test_encoding_numbers_words_by_first_appearance_cuts_and_pads(texts, length):
    seen = list(dict.fromkeys(word for text in texts for word in text))
    found, vocabulary = reviewed([" ".join(text).upper() for text in texts], length)
    assert vocabulary == len(seen) + 2
    for row, text in zip(found, texts, strict=True):
        ids = [seen.index(word) + 2 for word in text[:length]]
        assert row == ids + [0] * (length - len(ids))


# --- bad files ------------------------------------------------------------------------------------

COVERTYPE = lines_of([[i] * 54 + [1 + i % 7] for i in range(9)]).encode() + b"\n"
TICKERS = ",".join(f"S{i}" for i in range(21)).encode() + b"\n"
STOCKS = TICKERS + lines_of(np.ones((4, 21)), " ").encode() + b"\n"


def edit(data, line, change):
    lines = data.split(b"\n")
    lines[line - 1] = change(lines[line - 1])
    return b"\n".join(lines)


JESTER = "jester_data_40jokes_19181users.npy"
APS, CSV = "aps_failure_training_set.csv", "Amazon_Unlocked_Mobile.csv"
COVTYPE, CENSUS, STOCK = "covtype.data", "USCensus1990.data.txt", "raw_stock_contexts"
ARCHIVE, EEG = "covertype.zip", "data.csv"
BAD = [  # what is wrong, problem, file, bytes, what the message must say
    ("truncated", "covertype", COVTYPE, COVERTYPE[:-60], "line 9: .* columns instead of 55"),
    ("truncated", "covertype", "covtype.data.gz", gzip.compress(COVERTYPE)[:-12], "broken archive"),
    ("truncated", "covertype", ARCHIVE, zipped({"covtype.data": COVERTYPE})[:-20],
     "broken archive"),
    ("truncated", "jester", JESTER, npy(np.ones((9, 40)))[:-8], "not plain numpy arrays"),
    ("truncated", "financial", STOCK, STOCKS[:-40], "line 5: .* columns instead of 21"),
    ("truncated", "epileptic", EEG, eeg()[:-50], "line 11: .* columns instead of 180"),
    ("truncated", "census", CENSUS, census_text()[:-30], "line 31: .* columns instead of 69"),
    ("truncated", "scania", APS, aps()[:-40], "line 29: .* columns instead of 171"),
    ("truncated", "amazon", CSV, REVIEWS[:-8].encode(), "line 5: .* columns instead of 6"),
    ("columns", "covertype", COVTYPE, edit(COVERTYPE, 4, lambda r: r + b",1"),
     "line 4: 56 columns instead of 55"),
    ("columns", "covertype", COVTYPE,  # one too many, then one too few: as many fields as expected
     edit(edit(COVERTYPE, 4, lambda r: r + b",1"), 5, lambda r: r[2:]), "line 4:"),
    ("columns", "jester", JESTER, npy(np.ones((9, 39))), r"shape \(9, 39\)"),
    ("columns", "financial", STOCK, STOCKS[len(TICKERS):], "line 1: expected a header of 21 names"),
    ("columns", "census", CENSUS, census_text().replace(b"caseid,", b""),
     "line 1: expected a header"),
    ("columns", "census", CENSUS, census_text().replace(b"dOccup", b"dOther"),
     "line 1: expected a header"),
    ("text", "covertype", COVTYPE, edit(COVERTYPE, 3, lambda r: b"abc" + r[1:]),
     "line 3: 'abc' is not a number"),
    ("text", "financial", STOCK, edit(STOCKS, 3, lambda r: b"x" + r),
     "line 3: 'x1.0' is not a number"),
    ("text", "scania", APS, aps().replace(b",1001,", b",1oo1,"), "line 23: '1oo1' is not a number"),
    ("code", "census", CENSUS, census_text().replace(b"\n10001,0,50", b"\n10001,0,5000"),
     "line 3: a code that is not one of 0 to 999"),
    ("text", "census", CENSUS, census_text().replace(b"\n10001,0,50", b"\n10001,0,1.5"),
     "line 3: '1.5' is not a number"),
    ("text", "scania", APS, aps().replace(b",na,", b",nan,", 1), "line 22: '0n' is not a number"),
    ("text", "jester", JESTER, npy(np.full((9, 40), np.nan)), "finite ratings"),
    ("class", "covertype", COVTYPE, edit(COVERTYPE, 5, lambda r: r[:-1] + b"8"),
     "line 5: unknown class 8"),
    ("class", "scania", APS, aps().replace(b"\nneg,", b"\nnix,", 1),
     "line 23: 'nix' is not a number"),
    ("class", "scania", APS, aps().replace(b"\nneg,", b"\n0.5,", 1),
     "line 23: unknown class 0.5, expected 0 to 1"),
    ("class", "epileptic", EEG, edit(eeg(), 6, lambda r: r[:-1] + b"0"), "line 6: unknown class 0"),
    ("class", "census", CENSUS, census_text().replace(b",8,", b",9,", 1),
     "line 10: unknown class 9, expected 0 to 8"),
    ("class", "amazon", CSV, REVIEWS.replace(",1,", ",six,").encode(),
     "line 4: unknown class 'six'"),
    ("web page", "covertype", COVTYPE, HTML, "line 1: a web page, not data"),
    ("web page", "jester", JESTER, HTML, "line 1: a web page, not data"),
    ("web page", "amazon", CSV, b"\n  " + HTML, "line 1: a web page, not data"),
    ("unsafe zip", "covertype", ARCHIVE, zipped({"../x": b"1", "covtype.data": COVERTYPE}),
     "name '../x'"),
    ("unsafe zip", "covertype", ARCHIVE, zipped({"/etc/x": b"1", "covtype.data": COVERTYPE}),
     "unsafe name"),
    ("other zip", "covertype", ARCHIVE, zipped({"iris.data": b"1"}),
     "no covtype.data in the archive"),
    ("pickle", "jester", JESTER, npy(np.array([{}, []], object)),
     "not plain numpy arrays .*allow_pickle=False"),
    ("empty", "covertype", COVTYPE, b"", "line 1: the file is empty"),
    ("empty", "jester", JESTER, b"", "line 1: the file is empty"),
    ("empty", "scania", APS, b"\n\n", "line 1: the file is empty"),
    ("empty", "covertype", "covtype.data.gz", gzip.compress(b""), "line 1: the file is empty"),
    ("empty", "census", CENSUS, census_text().split(b"\n")[0],
     "line 1: expected a header of 69 names, then rows"),
    ("empty", "amazon", CSV, REVIEWS.split("\n")[0].encode(),
     "line 1: expected a header .* then rows"),
    ("no header", "scania", APS, b"some\nother text", "line 1: expected a header of 171 names"),
]


@pytest.mark.parametrize("name, file, data, message", [case[1:] for case in BAD],
                         ids=[f"{case[0]} {case[1]}" for case in BAD])
def test_a_bad_file_is_named_and_leaves_nothing_behind(folder, name, file, data, message):
    (folder / file).write_bytes(data)
    with pytest.raises(DataError, match=f"(?s){file}.*{message}.*get it again") as caught:
        load(name, data_dir=folder)
    assert not isinstance(caught.value, MissingData) and leftovers() == []
    assert [p.name for p in folder.iterdir()] == [file]


def test_check_names_every_bad_file(folder, capsys):
    bad = {name: (file, data) for _, name, file, data, _ in BAD}
    for file, data in bad.values():
        (folder / file).write_bytes(data)
    assert fetch.main(["check", "--data-dir", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    found = {line.split()[0] for line in lines if "BAD: " in line}
    assert found == set(bad) and len(bad) == 7


def test_good_files_pass_the_same_way(folder):
    """The bad files above are bad for the reason given: without the fault they load."""
    good = {COVTYPE: COVERTYPE, JESTER: npy(np.ones((9, 40))), STOCK: STOCKS, EEG: eeg(),
            CENSUS: census_text(), APS: aps(), CSV: REVIEWS.encode()}
    for file, data in good.items():
        (folder / file).write_bytes(data)
    for name in ("covertype", "jester", "financial", "epileptic", "census", "scania", "amazon"):
        assert len(load(name, data_dir=folder)) > 0


def test_smartphones_with_a_label_missing(folder):
    for name, data in har().items():
        (folder / Path(name).name).write_bytes(data[:-2] if "y_test" in name else data)
    with pytest.raises(DataError, match="y_test.txt, line 14: 14 labels for 15 rows"):
        load("smartphones", data_dir=folder)


def test_damaged_bundle_says_how_to_restore_it(tmp_path, monkeypatch):
    data = (ROOT / "data" / "statlog.npz").read_bytes()
    monkeypatch.setattr(datasets, "BUNDLE", tmp_path)
    for damaged in (data[:-100], data[:1000] + b"x" * 50 + data[1050:], b""):
        (tmp_path / "statlog.npz").write_bytes(damaged)
        with pytest.raises(DataError, match="statlog.npz.*git checkout -- data"):
            load("statlog")
    (tmp_path / "statlog.npz").unlink()
    with pytest.raises(DataError, match="statlog.npz.*git checkout -- data"):
        load("statlog")


# --- where files are looked for, and the cache of parsed tables -----------------------------------

def elevation(data_dir=None):
    return datasets.table(datasets.SOURCES["covertype"], data_dir).X[0, 0]


def test_folders_are_searched_in_order(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("NLTS_DATA", str(tmp_path / "env"))
    message = "covtype.data is not in .*run: python datasets.py fetch covertype"
    with pytest.raises(MissingData, match=message):
        load("covertype", data_dir=folder)
    with pytest.raises(MissingData, match="https://www.kaggle.com/.*into"):
        load("amazon")
    write_covertype(cache_dir(), 3, "covtype.data.gz")
    assert elevation(folder) == 3
    write_covertype(tmp_path / "env", 2)
    assert elevation(folder) == 2
    write_covertype(folder, 1)
    assert elevation(folder) == 1 and elevation() == 2


def test_a_table_is_parsed_once_until_its_file_changes(folder, monkeypatch):
    write_covertype(folder, 5)
    before = load("covertype", data_dir=folder)
    with monkeypatch.context() as patch:
        patch.setattr(datasets, "contents", lambda *_: pytest.fail("parsed again"))
        np.testing.assert_array_equal(load("covertype", data_dir=folder).contexts, before.contexts)
    write_covertype(folder, 77_777)
    assert elevation(folder) == 77_777
    cached, = (cache_dir() / "parsed").iterdir()  # and the old one is gone
    pickled = npy(np.array([{}], object))
    for damage in (b"", cached.read_bytes()[:-1], b"\x93NUMPY garbage", pickled):
        cached.write_bytes(damage)
        assert elevation(folder) == 77_777
    assert leftovers() == [cached.name]


def test_a_cache_that_cannot_be_written_does_not_matter(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    write_covertype(folder, 5)
    assert elevation(folder) == 5 and elevation(folder) == 5

    def full(*_, **__):
        raise OSError("no space left on device")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "full"))
    monkeypatch.setattr(datasets.np, "save", full)
    assert elevation(folder) == 5 and leftovers() == []


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
        server = self.server
        server.asked += 1
        data, how = server.data, server.behaviour
        if how == "404":
            return self.send_error(404)
        if how == "page":
            data = HTML
        if how == "wrong bytes":
            data = data[:50] + b"7" + data[51:]
        if how.endswith("then shorter") and server.asked > 1:
            data = b"short"
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if how == "silent":
            time.sleep(1.5)
        elif how == "trickle":
            for byte in data[:30]:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)
        elif how.startswith("cut") and (how == "cut always" or server.asked == 1):
            self.wfile.write(data[:100])  # then the connection closes
        else:
            self.wfile.write(data)

    def log_message(self, *args):
        pass


BIG = lines_of([[i % 900] * 54 + [1 + i % 7] for i in range(300)]).encode() + b"\n"


@pytest.fixture
def server(monkeypatch):
    server = Server(BIG)
    source = dataclasses.replace(datasets.SOURCES["covertype"], url=server.url("covtype.data"),
                                 rows=300, sha256=hashlib.sha256(BIG).hexdigest())
    monkeypatch.setitem(datasets.SOURCES, "covertype", source)
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("behaviour, times", [("good", 1), ("cut once", 2)])
def test_fetch_completes(server, folder, capsys, behaviour, times):
    server.behaviour = behaviour
    assert fetch.main(["fetch", "Covertype", "--data-dir", str(folder)]) == 0
    assert (folder / "covtype.data").read_bytes() == BIG and server.asked == times
    assert [p.name for p in folder.iterdir()] == ["covtype.data"]
    assert len(load("covertype", data_dir=folder)) == 300
    assert fetch.main(["fetch", "covertype", "--data-dir", str(folder)]) == 0
    assert server.asked == times  # it is there: nothing more was asked for
    assert "covertype: 300 rows are there" in capsys.readouterr().out


@pytest.mark.parametrize("behaviour, message", [
    ("404", "HTTP Error 404: Not Found; check connection and address"),
    ("cut always", "cut off after 100 of .*run it again"),
    ("wrong bytes", "sha256 .* instead of"),
    ("page", "a web page, not data"),
    ("silent", "timed out"),
    ("trickle", "under 1 kB/s")])
def test_a_failed_download_leaves_the_old_file_and_nothing_else(server, folder, behaviour, message):
    server.behaviour = behaviour
    (folder / "covtype.data").write_text("old")
    source = datasets.SOURCES["covertype"]
    with pytest.raises(DataError, match=f"covtype.data.*{message}"):
        fetch.fetch(source, folder, timeout=0.3)
    assert [p.name for p in folder.iterdir()] == ["covtype.data"]
    assert (folder / "covtype.data").read_text() == "old"
    assert leftovers() == []


def test_a_restart_keeps_nothing_of_the_first_try(server):
    server.behaviour = "cut, then shorter"
    assert fetch.download(server.url("covtype.data"), timeout=5) == b"short"


def test_fetch_refuses_a_shorter_table_of_an_unknown_checksum(server, folder):
    source = dataclasses.replace(datasets.SOURCES["covertype"], sha256="", rows=301)
    with pytest.raises(DataError, match="not all 301 rows; try again later"):
        fetch.fetch(source, folder)
    assert not list(folder.iterdir())


def test_fetch_an_archive(server, folder, monkeypatch):
    made = har()
    server.data = zipped({"UCI HAR Dataset.zip": zipped(made)})
    name = datasets.SOURCES["smartphones"].url.rsplit("/", 1)[1]
    source = dataclasses.replace(datasets.SOURCES["smartphones"], url=server.url(name), rows=45)
    monkeypatch.setitem(datasets.SOURCES, "smartphones", source)
    monkeypatch.setenv("NLTS_DATA", str(folder / "new"))
    assert fetch.main(["fetch", "smartphones"]) == 0 and len(load("smartphones")) == 45
    assert [p.name for p in (folder / "new").iterdir()] == [name]


def test_fetch_says_when_nobody_answers_and_what_a_person_must_do(server, folder, capsys):
    dead = dataclasses.replace(datasets.SOURCES["covertype"], url="http://127.0.0.1:9/covtype.data")
    with pytest.raises(DataError, match="127.0.0.1:9.*(?i:refused).*check connection"):
        fetch.fetch(dead, folder)
    assert fetch.main(["fetch", "amazon", "--data-dir", str(folder)]) == 1
    assert "https://www.kaggle.com/" in capsys.readouterr().err
    assert fetch.main(["fetch", "statlog"]) == 0
    assert "statlog: 43,500 rows" in capsys.readouterr().out
    (folder / "file").write_text("not a folder")
    assert fetch.main(["fetch", "covertype", "--data-dir", str(folder / "file")]) == 1


# --- commands -------------------------------------------------------------------------------------

def test_list_says_where_everything_is(folder, capsys):
    write_covertype(folder, 5)
    assert fetch.main(["--data-dir", str(folder)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert set(lines) == {"problem", *datasets.NAMES}
    assert lines["statlog"].split() == ["statlog", "43,500", "9", "7", "78.4%", "bundled"]
    assert lines["wheel"].split() == ["wheel", "any", "2", "5", "-", "synthetic"]
    assert lines["adult"].split()[1:5] == ["45,222", "90", "2", "75.2%"]
    path = str(folder / "covtype.data")
    assert lines["covertype"].split()[1:] == ["3", "54", "7", "100.0%", path]
    assert lines["census"].split()[1:5] == ["2,458,285", "377", "9", "-"]
    assert "missing; run: python datasets.py fetch census" in lines["census"]
    how = "missing; download Amazon_Unlocked_Mobile.csv from https://www.kaggle.com/"
    assert how in lines["amazon"]
    (folder / "data.csv").write_bytes(HTML)
    assert fetch.main(["--data-dir", str(folder)]) == 1
    bad, = (line for line in capsys.readouterr().out.splitlines() if "BAD: " in line)
    assert bad.startswith("epileptic") and "a web page" in bad


def test_check_finds_other_bytes_in_a_complete_table(server, folder, capsys):
    (folder / "covtype.data").write_bytes(BIG)
    assert fetch.main(["check", "--data-dir", str(folder)]) == 0
    assert "covtype.data, 300 of 300 rows are good" in capsys.readouterr().out
    (folder / "covtype.data").write_bytes(BIG.replace(b"899", b"898", 1).replace(b"7,7", b"8,7", 1))
    assert fetch.main(["check", "--data-dir", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "BAD: " in out and "sha256" in out


@pytest.mark.parametrize("argv", [
    ["fetch"], ["fetch", "iris"], ["fetch", "wheel"], ["check", "adult"], ["list", "adult"],
    ["unknown"]])
def test_bad_commands(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        fetch.main(argv)
    assert stop.value.code == 2 and "usage" in capsys.readouterr().err


def fastest(function, *args, repeat, **options):
    """Seconds of the fastest of some calls."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function(*args, **options)
        times.append(time.perf_counter() - start)
    return min(times)


def test_the_cache_takes_a_twentieth_of_loadtxt(folder):
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.integers(0, 4000, (40_000, 10)), rng.integers(1, 3, (40_000, 45))])
    np.savetxt(folder / "covtype.data", rows, fmt="%d", delimiter=",")
    source = datasets.SOURCES["covertype"]
    first = fastest(datasets.table, source, folder, repeat=1)
    slow = fastest(np.loadtxt, folder / "covtype.data", delimiter=",", repeat=2)
    assert fastest(datasets.table, source, folder, repeat=5) < min(first, slow) / 20
    assert first < 3 * slow  # as long as loadtxt; three times, because other programs run too


def test_the_command_runs_as_a_script():
    done = subprocess.run([sys.executable, "datasets.py", "--help"], cwd=ROOT, capture_output=True,
                          text=True)
    assert done.returncode == 0 and "fetch" in done.stdout
