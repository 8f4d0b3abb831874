"""Tests of reading, finding and downloading files: bad files, a real bad server, the commands."""
import dataclasses
import gzip
import hashlib
import http.server
import threading

import made_files as made
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import datasets
from datasets import DataError, MissingData, load
from lab import files

pytestmark = pytest.mark.usefixtures("no_cache")


def table(name):
    return datasets.table(datasets.SOURCES[name])


def published(tmp_path, name, file, data, **changes):
    """The data set's entry, with the address of a file with these bytes."""
    (tmp_path / file).write_bytes(data)
    return dataclasses.replace(datasets.SOURCES[name], url=f"file://{tmp_path / file}", **changes)


# --- tables of numbers ----------------------------------------------------------------------------

BAD_INTEGERS = ["x", "1.5", "1e3", "12345678901", "1,2", "1 2", "", "nan", "1_0"]


@given(arrays(np.int32, st.tuples(st.integers(1, 12), st.integers(2, 6))),
       st.sampled_from([",", " ", ";"]), st.sampled_from(["\n", "\r\n"]), st.data())
def test_integers_of_any_table_and_the_line_of_any_bad_one(X, sep, end, data):
    n_rows, columns = X.shape
    text = made.lines_of(X, sep, end) + data.draw(st.sampled_from(["", end]))
    found, line = files.read_numbers("t", text.encode(), columns, sep=sep)
    np.testing.assert_array_equal(found, X)
    assert found.dtype == np.int32 and line == 1
    rows, i = X.tolist(), data.draw(st.integers(0, n_rows - 1))
    rows[i][data.draw(st.integers(0, columns - 1))] = data.draw(st.sampled_from(BAD_INTEGERS))
    above = [["a remark"], [], ["and another"], ["name"] * columns]
    text = made.lines_of(above + rows, end=end).encode()
    with pytest.raises(DataError, match=f"^f.txt, line {i + 5}: .*get it again"):
        files.read_numbers("f.txt", text, columns, header="name", sep=",")


# --- readers --------------------------------------------------------------------------------------

def test_smartphones_from_a_zip_in_a_zip_and_with_a_label_missing(folder, tmp_path):
    parts = made.har()
    inner = made.zipped({f"UCI HAR Dataset/{name}": data for name, data in parts.items()})
    outer = made.zipped({"UCI HAR Dataset.names": b"?", "UCI HAR Dataset.zip": inner})
    file = "human+activity+recognition+using+smartphones.zip"
    assert datasets.fetch(published(tmp_path, "smartphones", file, outer)) == 45
    X, y, _ = table("smartphones")
    rows = parts["X_train.txt"] + b"\n" + parts["X_test.txt"]
    np.testing.assert_array_equal(X, np.loadtxt(rows.decode().split("\n")))
    assert y.tolist() == [i % 6 for i in range(30)] + [i % 6 for i in range(15)]
    for name, data in parts.items():                     # these are found before the archive
        (folder / name).write_bytes(data[:-2] if name == "y_test.txt" else data)
    with pytest.raises(DataError, match="y_test.txt, line 14: 14 labels for 15 rows"):
        load("smartphones")


def test_scania_has_lines_on_its_license_and_missing_values(folder):
    (folder / "aps_failure_training_set.csv").write_bytes(made.aps())
    X, y, _ = table("scania")
    assert X.shape == (8, 170) and y.tolist() == [1, 0, 0, 1, 0, 0, 1, 0]
    assert X[3, :5].tolist() == [2130709438.00, 2130709438.01, 2130709438.02, 0, 2130709438.04]


def test_census_is_one_hot_over_the_whole_file(folder):
    (folder / "USCensus1990.data.txt.gz").write_bytes(gzip.compress(made.census_text()))
    body = np.array([row.split(",") for row in made.census_text().decode().split("\n")[1:]], int)
    columns = np.delete(body, [0, 35], axis=1).T
    found = table("census")
    assert found.y.tolist() == [i % 9 for i in range(30)]
    expected = [column == value for column in columns for value in np.unique(column)]
    np.testing.assert_array_equal(datasets.one_hot(found.X, found.levels), np.transpose(expected))
    assert {load("census", 3, seed).dim for seed in range(4)} == {len(expected)}


def test_epileptic_under_another_name_and_without_quotes(folder):
    (folder / "Epileptic Seizure Recognition.csv").write_bytes(made.eeg(quote=""))
    X, y, _ = table("epileptic")
    assert X[3, :3].tolist() == [-3, -4, -5] and X.shape == (10, 178)
    assert y.tolist() == [i % 5 for i in range(10)]


def test_amazon_reads_quotes_newlines_and_skips_empty_reviews(folder):
    (folder / "Amazon_Unlocked_Mobile.csv").write_text(made.REVIEWS)
    p = load("amazon")
    assert p.contexts.shape == (2, 60) and p.contexts.dtype.kind == "i" and p.n_arms == 5
    assert sorted(p.rewards.argmax(1)) == [0, 4]
    tokens = ["great", "phone", ",", "i", "do", "n't", "regret", "it", "!", "bad"]
    assert p.vocabulary == 2 + len(tokens) == p.contexts.max() + 1


# --- bad files ------------------------------------------------------------------------------------

GOOD = {  # problem: file, bytes
    "covertype": ("covtype.data", made.covertype()),
    "jester": ("jester_data_40jokes_19181users.npy", made.jokes(np.ones((9, 40)))),
    "census": ("USCensus1990.data.txt", made.census_text()),
    "financial": ("raw_stock_contexts", made.stocks(np.ones((4, 21)))),
    "epileptic": ("data.csv", made.eeg()),
    "scania": ("aps_failure_training_set.csv", made.aps()),
    "amazon": ("Amazon_Unlocked_Mobile.csv", made.REVIEWS.encode()),
}
BAD = [  # problem, how its bytes are changed, what the message must say
    ("financial", lambda data: data[:-40], "line 5: .* columns instead of 21"),
    ("financial", lambda data: data.replace(b"1.0", b"1e999", 1), "line 2: .* not finite"),
    ("census", lambda data: data.replace(b"dOccup", b"dOther"),
     "line 1: expected a header of 69 names, then rows"),
    ("scania", lambda data: data.replace(b"\nneg,", b"\n0.5,", 1), "line 5: unknown class 0.5"),
    ("epileptic", lambda data: data.replace(b",5\n", b",6\n", 1), "line 6: .* expected 1 to 5"),
    ("amazon", lambda data: data.replace(b",1,", b",six,"), "line 4: unknown class 'six'"),
    ("amazon", lambda data: data.replace(b"Rating", b"Stars"), "line 1: expected a header with R"),
    ("jester", lambda data: made.jokes(np.array([{}, []], object)), "not an .*allow_pickle=False"),
    ("jester", lambda data: made.jokes(np.full((9, 40), np.nan)), "not finite ratings of 40 jokes"),
    ("covertype", lambda data: gzip.compress(data)[:-12], "broken archive"),
    ("covertype", lambda data: made.zipped({"iris.data": b"1"}), "no covtype.data in the archive"),
]


@pytest.mark.parametrize("name, change, message", BAD, ids=[case[0] for case in BAD])
def test_a_bad_file_is_named_with_its_line(folder, name, change, message):
    """It is bad for the reason given: without the fault it loads."""
    file, data = GOOD[name]
    (folder / file).write_bytes(data)
    assert len(load(name)) > 0
    datasets.parse.cache_clear()
    (folder / file).write_bytes(change(data))
    with pytest.raises(DataError, match=f"(?s){file}.*({message}).*get it again"):
        load(name)


# --- where files are looked for -------------------------------------------------------------------

def test_folders_are_searched_in_order(folder):
    message = "covtype.data is not in .*run: python datasets.py fetch covertype"
    for function in (load, datasets.available):
        with pytest.raises(MissingData, match=message):
            function("covertype")
    with pytest.raises(MissingData, match=f"https://www.kaggle.com/.*into {folder}"):
        datasets.available("amazon")
    last = files.folders()[-1]
    last.mkdir(parents=True)
    (last / "covtype.data.gz").write_bytes(gzip.compress(made.covertype(3)))
    assert len(load("covertype")) == 3
    (folder / "covtype.data").write_bytes(made.covertype(2))
    assert len(load("covertype")) == 2 and datasets.available("covertype")


# --- downloads ------------------------------------------------------------------------------------

def test_fetch_downloads_what_is_missing_and_a_checksum_names_a_bad_file(folder, tmp_path):
    data = made.covertype(300)
    sha256 = hashlib.sha256(data).hexdigest()
    source = published(tmp_path, "covertype", "covtype.data", data, rows=300, sha256=sha256)
    assert datasets.fetch(source) == 300
    assert [p.name for p in folder.iterdir()] == ["covtype.data"]
    (tmp_path / "covtype.data").unlink()
    assert datasets.fetch(source) == 300  # the second time it is there
    (folder / "covtype.data").write_bytes(data.replace(b"299", b"298", 1))
    with pytest.raises(DataError, match=f"{folder}/covtype.data: sha256 .* instead of {sha256}"):
        datasets.fetch(source)


class Cut(http.server.BaseHTTPRequestHandler):
    """A server whose connection breaks in the middle of the file."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"7" * 100)


def test_a_failed_download_leaves_nothing(folder):
    with http.server.HTTPServer(("127.0.0.1", 0), Cut) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        for url, message in ((f"http://127.0.0.1:{server.server_port}/cut.data", "100 bytes read"),
                             (f"file://{folder}/no.data", "No such file")):
            source = dataclasses.replace(datasets.SOURCES["covertype"], url=url)
            with pytest.raises(DataError, match=f"{url}: .*{message}.*; .* run it again"):
                datasets.fetch(source)
    assert not list(folder.iterdir())


# --- commands -------------------------------------------------------------------------------------

def test_fetch_says_what_a_person_must_do_and_goes_on(folder, capsys):
    assert datasets.main(["fetch", "amazon", "statlog"]) == 1
    out, err = capsys.readouterr()
    assert "https://www.kaggle.com/" in err and "statlog: 43,500 of 43,500 rows" in out


def test_list_says_where_everything_is(folder, capsys):
    (folder / "covtype.data").write_bytes(made.covertype())
    assert datasets.main([]) == 0
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert set(lines) == {"problem", *datasets.NAMES}
    assert lines["statlog"] == ["43,500", "9", "7", "bundled"]
    assert lines["wheel-0.5"] == ["any", "2", "5", "synthetic"]
    assert lines["covertype"] == ["581,012", "54", "7", str(folder / "covtype.data")]
    assert " ".join(lines["census"][3:]) == "missing; run: python datasets.py fetch census"
