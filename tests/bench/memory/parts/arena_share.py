"""Measures a shuffle that is larger than the arena."""

import tempfile
from pathlib import Path

import suite
from report.figures import number, table

from parts import guest

NAME = "share"
TITLE = "A shuffle larger than the arena"
ABOUT = (
    "One endpoint reads every block of a shuffle from another, both in one program, partition "
    "by partition as reducers request them (64 blocks in a request, 5 requests in flight). It "
    "does so twice, and the second pass is timed. The owner's arena is 1, 10 and 100 % of the "
    "shuffle, in turn. The smallest arena is 32 MiB, so the shuffle has 3.2 GB. All of it is "
    "in memory (a tmpfs), so no disk is measured. Figures are MB/s, medians of the rounds, "
    "with the lowest and highest in parentheses. The last columns count the reads of both "
    "passes of the last round by the place of their bytes: the chunk cache, the page cache "
    "(minor fault) or the disk (major fault)."
)
FABRICS = ["shm", "tcp"]


def measure(_root, _target, options):
    program = suite.built("faro-endpoint", "arena_share")
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
    return table(["fabric", "block", "arena", "MB/s", "cached", "minor fault", "major fault"], rows)
