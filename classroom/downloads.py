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
WORK = (".py", ".ipynb", ".zip")
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


def depth_of(entries):
    """How many folders all entries have in common."""
    parents = [entry.path.parent for entry in entries]
    return len(PurePosixPath(posixpath.commonpath(parents)).parts) if parents else 0


def owner(path, depth=0):
    """(student, folder, path of the student's own) if Moodle or Canvas has named it at this depth,
    or None. What lies deeper was named by the student."""
    for i, part in enumerate(path.parts[:depth + 1]):
        if match := MOODLE.fullmatch(part):
            own = [match["file"]] if match["file"] else []
            return match["student"], part, PurePosixPath(*own, *path.parts[i + 1:])
    match = CANVAS.fullmatch(path.name)
    if match and len(path.parts) == depth + 1:
        student = match["student"].replace("_LATE", "")
        return student, "", PurePosixPath(NUMBERED.sub("", match["file"]))
    return None


def named(entries):
    """{student: Bundle} of a download of Moodle or Canvas; nothing if it is none: then it has
    folders, zips or programs without such a name."""
    depth, bundles = depth_of(entries), {}
    for entry in entries:
        if found := owner(entry.path, depth):
            student, folder, own = found
            own = [Entry(own, entry.size, entry.read)] if own.parts else []
            bundles.setdefault(student, Bundle(student, folder=folder)).add(
                Bundle(student, own, folder))
        elif len(entry.path.parts) > depth + 1 or entry.path.suffix.lower() in WORK:
            return {}
    return bundles


def of_a_class(entries, strict):
    """{name: its entries}: of a class each folder or zip at the top, else all of them as one.
    strict: a class has several nlts.py or zips."""
    depth, tops = depth_of(entries), {}
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


def is_loose(path):
    """Whether the path itself is a student's, named by Moodle or Canvas."""
    found = owner(PurePosixPath(path.name))
    return bool(found) and (path.is_file() or found[1] != "")    # Canvas names files only


def entries_at(path, whole=False):
    """The files at a path. whole: a zip is one of them, or the folder's name is part of theirs."""
    if path.is_symlink() or not path.exists():
        raise ValueError("there is no such file or folder, or it is a link")
    zipped = path.is_file() and path.suffix.lower() == ".zip" and not whole
    entries = listing(zipfile.ZipFile(path) if zipped else path)
    if path.is_dir() and whole:
        return [Entry(PurePosixPath(path.name, entry.path), entry.size, entry.read)
                for entry in entries]
    return entries


def is_download(path):
    """Whether Moodle or Canvas has named what is at a path; a damaged one may be."""
    try:
        return not is_loose(path) and bool(named(entries_at(path)))
    except Exception:                            # a damaged zip raises almost anything
        return True


def bundles_at(path, single, strict, downloads):
    """[Bundle] of the students at a path. downloads: names inside it are those of students."""
    name = path.name if path.is_dir() else path.stem
    whole = not single and is_loose(path)
    entries = entries_at(path, whole)
    if single:
        return [Bundle(name, entries)]
    found = named(entries) if whole or downloads else {}
    if found:
        return list(found.values())
    return [Bundle(str(PurePosixPath(name, top.removesuffix(".zip"))), own)
            for top, own in of_a_class(entries, strict).items()]


def students_of(paths, single=False):
    """[Bundle] of all paths. What Moodle or Canvas has named is joined over paths, too. Such names
    inside a path count if all paths have them: no student's folder is a download among others."""
    bundles, joined, downloads = [], {}, all(map(is_download, paths))
    for path in paths:
        try:
            found = bundles_at(path, single, len(paths) > 1, downloads)
        except Exception as error:               # a damaged zip raises almost anything
            found = [Bundle(path.stem, problem=str(error) or repr(error))]
        loose = not single and is_loose(path)
        for bundle in found:
            if loose and bundle.id in joined:
                joined[bundle.id].add(bundle)
                continue
            if loose:
                joined[bundle.id] = bundle
            bundles.append(bundle)
    return bundles

