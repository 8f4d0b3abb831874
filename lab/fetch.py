"""Downloads of the data sets, and the commands of `python datasets.py`."""
import argparse
import hashlib
import http.client
import sys
import time
import urllib.request

from datasets import SOURCES, folders, load, locate, parse, table
from lab.files import DataError, MissingData, contents, replacing


def download(url, timeout, tries=3):
    """The bytes at `url`, if they come at 1 kB/s at least; each try starts again."""
    for _ in range(tries):
        data = bytearray()
        start = time.monotonic()
        try:
            with urllib.request.urlopen(url, timeout=timeout) as response:
                size = response.length
                while chunk := response.read1(1 << 16):
                    data += chunk
                    if time.monotonic() - start > max(timeout, len(data) / 1000):
                        raise TimeoutError("timed out: under 1 kB/s")
            if size in (None, len(data)):
                return bytes(data)
            problem = f"cut off after {len(data)} of {size} bytes"
        except (OSError, http.client.HTTPException) as error:
            problem = str(error) or type(error).__name__
    raise DataError(url, problem, advice="check connection and address, and run it again")


def verify(source, paths, data=None):
    """Read a data set afresh: the number of its rows. If these are all, the checksum must fit."""
    rows = len(parse(source, paths, data).y)
    if rows == source.rows and source.sha256:
        found = hashlib.sha256(contents(paths[0], source.files[0], data)).hexdigest()
        if found != source.sha256:
            raise DataError(paths[0], f"sha256 {found} instead of {source.sha256}")
    return rows


def fetch(source, data_dir=None, timeout=30.0):
    """Download a data set; the file is in place only once it has been read from end to end."""
    target = folders(data_dir)[0] / source.url.rsplit("/", 1)[1]
    print(f"{source.name}: downloading {source.url}", file=sys.stderr)
    with replacing(target) as f:
        data = download(source.url, timeout)
        if verify(source, [target] * len(source.files), data) != source.rows:
            raise DataError(target, f"not all {source.rows} rows", advice="try again later")
        f.write(data)


def show(data_dir, check=False):
    """One line per problem; returns the number of bad ones. check: read files, not the cache."""
    row = "{:12}{:>10}{:>5}{:>6}{:>10}  {}"
    print(row.format("problem", "steps", "dim", "arms", "best arm", "data"))
    bad = 0
    for name, source in SOURCES.items():
        steps, dim, share = source.rows, source.dim, "-"
        try:
            steps = len(table(source, data_dir).y)
            paths = locate(source, data_dir)
            place = str(paths[0]) if paths else "bundled"
            if check:
                place += f", {verify(source, paths):,} of {source.rows:,} rows are good"
            p = load(name, min(steps, 60_000), data_dir=data_dir)  # Census would need 8 GB
            dim, share = p.dim, f"{p.rewards.mean(0).max() / p.optimal.mean():.1%}"
        except MissingData as error:
            place = f"missing; {error.advice}"
        except DataError as error:
            place = f"BAD: {error}"
            bad += 1
        print(row.format(name, f"{steps:,}", dim, source.arms, share, place))
    print(row.format("wheel", "any", 2, 5, "-", "synthetic"))
    return bad


def main(argv=None):
    """0 if all went well, else 1."""
    parser = argparse.ArgumentParser(prog="datasets.py", description="The data sets.")
    parser.add_argument("command", nargs="?", default="list", choices=("list", "fetch", "check"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="for fetch: data sets, or all")
    parser.add_argument("--data-dir", help="look here first, and download to here")
    args = parser.parse_args(argv)
    names = list(SOURCES) if args.names == ["all"] else [name.lower() for name in args.names]
    if bool(names) != (args.command == "fetch") or set(names) - set(SOURCES):
        parser.error(f"fetch takes all, or some of {', '.join(SOURCES)}; list and check take none")
    failed = 0 if names else show(args.data_dir, args.command == "check")
    for source in map(SOURCES.get, names):
        try:
            if source.url and locate(source, args.data_dir) is None:
                fetch(source, args.data_dir)
            print(f"{source.name}: {len(table(source, args.data_dir).y):,} rows are there")
        except (DataError, OSError) as error:  # OSError: the folder cannot be written
            failed += 1
            print(f"{source.name}: {error}", file=sys.stderr)
    return 1 if failed else 0
