"""Chooses where files are: on the disk of the tree, as users' files are, or on tmpfs."""

import os
import tempfile
from pathlib import Path

DISK, TMPFS = "disk", "tmpfs"
ALL = [DISK, TMPFS]
SHARED_MEMORY = Path("/dev/shm")


def folder(kind, target):
    """Makes a new folder of this kind."""
    parent = SHARED_MEMORY if kind == TMPFS else target
    return Path(tempfile.mkdtemp(prefix="faro-bench-", dir=parent))


def file_system(path):
    """Returns the file system's type, as the kernel names it, from the longest mount point above
    the path."""
    path, found = os.path.realpath(path), ("", "unknown")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        point, kind = line.split()[1:3]
        inside = os.path.commonpath([point, path]) == point
        # A later mount covers an earlier one at the same place.
        if inside and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]


def warm(folder):
    """Reads all files below the folder, so that they are in the page cache."""
    buffer = bytearray(8 << 20)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass
