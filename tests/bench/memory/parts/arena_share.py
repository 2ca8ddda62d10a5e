"""A shuffle that is larger than the arena."""

import tempfile
from pathlib import Path

from report.figures import number, table

from parts import guest

NAME = "share"
TITLE = "A shuffle larger than the arena"
ABOUT = (
    "Every block of a shuffle, read by one endpoint from another in one program, partition by "
    "partition as reducers ask (64 blocks to a request, 5 requests under way), the second time "
    "over, while the owner's arena is 1, 10 and 100 % of the shuffle, in turn. The smallest "
    "arena is 32 MiB, so that the shuffle has 3.2 GB; all of it is in memory (a tmpfs, so that "
    "no disk is measured). MB/s, medians of the rounds with their least and most; pieces of "
    "both passes by exit, in the last round."
)
FABRICS = ["shm", "tcp"]


def measure(root, _target, options):
    program = guest.example(root, "faro-endpoint", "arena_share")
    cells = []
    with tempfile.TemporaryDirectory(prefix="faro-share-", dir="/dev/shm") as directory:
        for fabric in FABRICS:
            command = [program, fabric, Path(directory) / fabric, min(options.rounds, 3)]
            cells += guest.here([*command, 400] if options.quick else command)
    return cells


def section(cells):
    rows = [
        [
            c["fabric"],
            guest.size(c["bytes"]),
            f"{c['share']} %",
            f"{number(c['median'])} ({number(c['least'])} to {number(c['most'])})",
            c["resident"],
            c["minor"],
            c["major"],
        ]
        for c in cells
    ]
    return table(["fabric", "block", "arena", "MB/s", "resident", "minor", "major"], rows)
