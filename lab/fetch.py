"""Downloads of the data sets, and the commands of `python datasets.py`."""
import argparse
import hashlib
import http.client
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np

import datasets
from datasets import SOURCES, classify, folders, how_to_get, load, locate
from lab.files import DataError, MissingData, contents, replacing

# --- downloads ------------------------------------------------------------------------------------

def download(url, f, timeout=30.0, tries=3):
    """Write `url` to the empty file `f`; a broken connection is taken up where it broke."""
    for _ in range(tries):
        try:
            total = transfer(url, f, timeout)
        except urllib.error.HTTPError as error:
            advice = "try later, or look for the file's new address"
            raise DataError(url, f"HTTP {error.code} {error.reason}", advice=advice) from error
        except (OSError, http.client.HTTPException) as error:
            problem = str(getattr(error, "reason", error)) or type(error).__name__
            continue
        if total in (None, f.tell()):
            print(f"\r{url}: {f.tell() / 1e6:.1f} MB      ", file=sys.stderr)
            return
        problem = f"cut off after {f.tell()} of {total} bytes"
    raise DataError(url, problem, advice="check the connection and run the same command again")


def transfer(url, f, timeout):
    """Append to `f` what is missing, at 1 kB/s at least; the size it should then have, or None."""
    done = f.tell()
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        if done and response.status != 206:  # this server cannot resume: start again
            done = f.seek(0)
            f.truncate()
        total = None if response.length is None else done + response.length
        since, before, shown = time.monotonic(), done, 0.0
        while chunk := response.read1(1 << 16):
            f.write(chunk)
            now = time.monotonic()
            if now - since > timeout:
                if f.tell() - before < 1000 * timeout:
                    raise TimeoutError(f"under 1 kB/s for {timeout:g} s")
                since, before = now, f.tell()
            if now - shown > 0.2 and sys.stderr.isatty():
                shown = now
                of = f" of {total / 1e6:.1f}" if total else ""
                progress = f"\r{url}: {f.tell() / 1e6:.1f}{of} MB "
                print(progress, end="", file=sys.stderr, flush=True)
    return total


def inspect(source, paths, data=None):
    """Read a data set afresh: (its table, whether it is complete)."""
    files = [(p, contents(p, names, data)) for p, names in zip(paths, source.files, strict=True)]
    result = source.read(*files)
    first = files[0][1] if files else (datasets.BUNDLE / f"{source.name}.npz").read_bytes()
    found = hashlib.sha256(first).hexdigest()
    complete = found == source.sha256 or len(result.y) == source.rows
    one_form = source.sha256 and not source.page  # people post a table in more than one form
    if complete and one_form and found != source.sha256:
        what = f"has all rows, but sha256 {found} instead of {source.sha256}"
        if not files:
            raise DataError(source.name, what, advice=datasets.RESTORE)
        raise DataError(paths[0], what)
    return result, complete


def fetch(source, data_dir=None, timeout=30.0):
    """Download a data set; the file is in place only once it has been read from end to end."""
    if not source.url:
        what = "its host wants a person to log in"
        raise MissingData(source.name, what, advice=how_to_get(source, data_dir))
    target = folders(data_dir)[0] / source.url.rsplit("/", 1)[1]
    with replacing(target) as f:
        download(source.url, f, timeout)
        f.seek(0)
        result, complete = inspect(source, [target] * len(source.files), f.read())
        if not complete:
            what = f"{len(result.y)} rows instead of {source.rows}"
            raise DataError(target, what, advice="try again later")
    return target


# --- commands -------------------------------------------------------------------------------------

def where(source, data_dir):
    """Where the data is, or how to get it."""
    if not source.files:
        return "bundled"
    paths = locate(source, data_dir)
    return str(paths[0]) if paths else f"missing; {how_to_get(source, data_dir)}"


def measures(source, data_dir):
    """(steps, dim, what the best single arm earns, as a share of the optimum)."""
    if source.pay is not classify:
        p = load(source.name, data_dir=data_dir)
        return len(p), p.dim, p.rewards.mean(0).max() / p.optimal.mean()
    t = datasets.table(source, data_dir)  # not the problem: Census would need 8 GB
    return len(t.y), np.maximum(t.levels, 1).sum(), np.bincount(t.y).max() / len(t.y)


def show(data_dir):
    """One line a problem."""
    print(f"{'problem':12}{'steps':>10}{'dim':>5}{'arms':>6}{'best arm':>10}  data")
    for source in SOURCES.values():
        steps, dim, share = source.rows, source.dim, "-"
        place = where(source, data_dir)
        try:
            steps, dim, best = measures(source, data_dir)
            share = f"{best:.1%}"
        except MissingData:
            pass  # `place` says so
        except DataError as error:
            place = f"bad: {error}"
        print(f"{source.name:12}{steps:10,}{dim:5}{source.arms:6}{share:>10}  {place}")
    p = datasets.wheel()
    best = p.rewards.mean(0).max() / p.optimal.mean()
    print(f"{'wheel':12}{len(p):10,}{p.dim:5}{p.n_arms:6}{best:>10.1%}  "
          "synthetic, any number of steps")


def check(data_dir):
    """Re-read all that is present; the number of bad data sets."""
    bad = 0
    for source in SOURCES.values():
        paths = locate(source, data_dir) if source.files else []
        if paths is None:
            print(f"{source.name:12}{where(source, data_dir)}")
            continue
        try:
            result, complete = inspect(source, paths)
            size = "complete" if complete else f"a part of the complete {source.rows:,}"
            print(f"{source.name:12}ok: {len(result.y):,} rows, {size}; {where(source, data_dir)}")
        except DataError as error:
            bad += 1
            print(f"{source.name:12}BAD: {error}")
    return bad


def fastest(function, *args, repeat=3, **kwargs):
    """Seconds of the fastest of some calls."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function(*args, **kwargs)
        times.append(time.perf_counter() - start)
    return min(times)


def statlog_times():
    """Rows of (what, seconds, seconds of numpy.loadtxt, limit as a part of these)."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "shuttle.trn"
        np.savetxt(text, np.column_stack(datasets.bundled("statlog"))[:43_500], fmt="%d")
        base = fastest(np.loadtxt, text)
    return [("statlog, numpy.loadtxt of shuttle.trn", base, base, 1),
            ("statlog, bundled", fastest(load, "statlog"), base, 1)]


def covertype_times(path, data_dir):
    """The same of a large table: read the first time, then from the cache."""
    source = SOURCES["covertype"]
    base = fastest(np.loadtxt, path, delimiter=",", repeat=1)
    first = fastest(inspect, source, [path], repeat=1)
    datasets.table(source, data_dir)  # from here on it is in the cache
    cached = fastest(datasets.table, source, data_dir)
    drawn = fastest(load, "covertype", 5000, 0, data_dir)
    return [(f"covertype, numpy.loadtxt of {path.name}", base, base, 1),
            ("covertype, first time", first, base, 1.5),
            ("covertype, cached", cached, base, 1 / 20),
            ("covertype, 5,000 steps, cached", drawn, base, 1 / 20)]


def benchmark(data_dir):
    """Seconds to load, beside numpy.loadtxt in the same run; how many are over their limit."""
    source = SOURCES["covertype"]
    paths = locate(source, data_dir)
    rows = statlog_times()
    if paths:
        rows += covertype_times(paths[0], data_dir)
    for what, seconds, base, limit in rows:
        print(f"{what:45}{seconds:9.3f} s{seconds / base:8.3f} of loadtxt, limit {limit:g}")
    if not paths:
        print(f"covertype: {where(source, data_dir)}")
    return sum(seconds > limit * base for _, seconds, base, limit in rows)


def fetch_all(names, data_dir):
    """Download what is missing; the number of data sets that could not be had."""
    failed = 0
    for source in map(SOURCES.get, names):
        try:
            there = not source.files or locate(source, data_dir)
            place = where(source, data_dir) if there else fetch(source, data_dir)
            print(f"{source.name}: {place}")
        except (DataError, OSError) as error:  # OSError: the folder cannot be written
            failed += 1
            print(f"{source.name}: {error}", file=sys.stderr)
    return failed


def main(argv=None):
    """0 if all went well, else 1."""
    commands = {"list": show, "check": check, "benchmark": benchmark}
    known = ", ".join(SOURCES)
    parser = argparse.ArgumentParser(
        prog="datasets.py", description="List, download, check and time the data sets.")
    parser.add_argument("command", nargs="?", default="list", choices=(*commands, "fetch"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"for fetch: all, or {known}")
    parser.add_argument("--data-dir", help="look here first, and download to here")
    args = parser.parse_args(argv)
    if args.command != "fetch":
        if args.names:
            parser.error(f"{args.command} takes no names")
        return 1 if commands[args.command](args.data_dir) else 0
    names = list(SOURCES) if args.names == ["all"] else [name.lower() for name in args.names]
    if not names or set(names) - set(SOURCES):
        parser.error(f"fetch: expected all, or some of {known}")
    return 1 if fetch_all(names, args.data_dir) else 0
