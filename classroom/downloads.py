"""Whose file is whose: a class as Moodle, Canvas, GitHub Classroom or a mail program has it.

Moodle           a folder per student: Ann Lee_123_assignsubmission_file_, and ..._onlinetext_
Canvas           loose files: leeann_LATE_123_4567_nlts-1.py; a student's are joined
GitHub Classroom a folder of repositories
else             a folder or zip per student, or each named on the command line
"""
import posixpath
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

SKIPPED = {"__MACOSX", "__pycache__", "checks", "solutions", "node_modules", "venv"}
SKIPPED_TESTS = ("test_", "check.py", "conftest.py")
MOODLE = re.compile(r"(?P<student>.+_\d+)_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*))?")
CANVAS = re.compile(r"(?P<student>[^\W_]+(?:_LATE)?_\d+)_\d+_(?P<file>.+)")
NUMBERED = re.compile(r"-\d+(?=\.\w+$)")         # Canvas: nlts-1.py is a second nlts.py


@dataclass(frozen=True)
class Entry:
    """A file: where it is, how large it says it is, and how to read it."""
    path: PurePosixPath
    size: int
    read: Callable


@dataclass
class Bundle:
    """One student's files, or why there are none."""
    id: str
    entries: list = field(default_factory=list)
    folder: str = ""                             # as Moodle names it
    problem: str = ""

    def add(self, other):
        """More files of the same student."""
        self.entries += other.entries
        if "_file" in other.folder:              # where Moodle wants feedback
            self.folder = other.folder


def listing(place):
    """Students' own files in a folder or zip, or of a file; no links, nothing that is hidden."""
    if isinstance(place, zipfile.ZipFile):
        found = [(info.filename.replace("\\", "/"), info.file_size, partial(place.read, info))
                 for info in place.infolist() if info.filename and not info.is_dir()]
    else:
        folder, paths = (place, place.rglob("*")) if place.is_dir() else (place.parent, [place])
        found = [(path.relative_to(folder).as_posix(), path.stat().st_size, path.read_bytes)
                 for path in sorted(paths) if path.is_file() and not path.is_symlink()]
    entries = [Entry(PurePosixPath(name), size, read) for name, size, read in found]
    return [entry for entry in entries if entry.path.parts
            and not any(part in SKIPPED or part[0] in "./" for part in entry.path.parts)]


def owner(path):
    """(student, folder, path of the student's own) if Moodle or Canvas has named it, or None."""
    for i, part in enumerate(path.parts):
        if match := MOODLE.fullmatch(part):
            own = [match["file"]] if match["file"] else []
            return match["student"], part, PurePosixPath(*own, *path.parts[i + 1:])
    if match := CANVAS.fullmatch(path.name):
        student = match["student"].replace("_LATE", "")
        return student, "", PurePosixPath(NUMBERED.sub("", match["file"]))
    return None


def named(entries):
    """{student: Bundle} of entries that Moodle or Canvas has named."""
    bundles = {}
    for entry in entries:
        if found := owner(entry.path):
            student, folder, own = found
            own = [Entry(own, entry.size, entry.read)] if own.parts else []
            bundles.setdefault(student, Bundle(student, folder=folder)).add(
                Bundle(student, own, folder))
    return bundles


def of_a_class(entries, strict):
    """{name: its entries}: of a class each folder or zip at the top, else all of them as one.
    strict: a class has several nlts.py or zips."""
    parents = [entry.path.parent for entry in entries]
    depth = len(PurePosixPath(posixpath.commonpath(parents)).parts) if parents else 0
    tops = {}
    for entry in entries:
        tops.setdefault(entry.path.parts[depth], []).append(entry)
    programs = [top for top in tops if top.lower().endswith((".py", ".ipynb"))
                and not top.lower().startswith(SKIPPED_TESTS)]
    endings = ("nlts.py", ".zip") if strict else ("nlts.py", ".ipynb", ".zip")
    work = {entry.path.parts[depth] for entry in entries
            if entry.path.name.lower().endswith(endings)}
    if programs or len(work) < 2:
        return {"": entries}
    return {top: own for top, own in tops.items()
            if len(own[0].path.parts) > depth + 1 or top.lower().endswith(".zip")}


def bundles_at(path, single, strict):
    """[Bundle] of the students at a path."""
    name = path.name if path.is_dir() else path.stem
    if path.is_symlink() or not path.exists():
        raise ValueError("there is no such file or folder, or it is a link")
    of_one = not single and owner(PurePosixPath(path.name))      # named one by one
    zipped = path.is_file() and path.suffix.lower() == ".zip" and not of_one
    entries = listing(zipfile.ZipFile(path) if zipped else path)
    if single:
        return [Bundle(name, entries)]
    if path.is_dir() and of_one:
        entries = [Entry(PurePosixPath(path.name, entry.path), entry.size, entry.read)
                   for entry in entries]
    found = named(entries)
    if found:
        return list(found.values())
    return [Bundle(str(PurePosixPath(name, top.removesuffix(".zip"))), own)
            for top, own in of_a_class(entries, strict).items()]


def students_of(paths, single=False):
    """[Bundle] of all paths. What Moodle or Canvas has named is joined over paths, too."""
    bundles, joined = [], {}
    for path in paths:
        try:
            found = bundles_at(path, single, strict=len(paths) > 1)
        except Exception as error:               # a damaged zip raises almost anything
            found = [Bundle(path.stem, problem=str(error) or repr(error))]
        loose = not single and owner(PurePosixPath(path.name))
        for bundle in found:
            if loose and bundle.id in joined:
                joined[bundle.id].add(bundle)
                continue
            if loose:
                joined[bundle.id] = bundle
            bundles.append(bundle)
    return bundles

