"""Measures the cost of a read by where its bytes are."""

import tempfile
from pathlib import Path

import suite
from report.figures import number, table

from parts import guest

NAME = "exits"
TITLE = "A read, by where its bytes are"
ABOUT = (
    "One endpoint fetches one block from another, both in one program (in the guest for "
    "verbs), one request at a time. The columns:\n\n"
    "- *READ*: a plain one-sided read between two fabrics that one thread drives\n"
    "- *READ + version*: the same, followed by a read of the 8 bytes of a version, as in a "
    "remote read of cached pages\n"
    "- *cached*: a fetch of bytes in a page of the chunk cache\n"
    "- *minor fault*: a fetch of bytes in the operating system's page cache\n"
    "- *major fault*: a fetch of bytes on the disk (the host's disk, or a loop device of the "
    "guest)\n"
    "- *disk*: the same bytes with `pread` from the disk\n\n"
    "Figures are microseconds, medians of the rounds. Every fetch crosses four threads, and "
    "each of them must be woken. The differences between the columns are the cost of the "
    "place. Reads of 1 MB are of 256 KB for READ."
)
EXITS = ["read", "read+version", "resident", "minor", "major", "medium"]
FABRICS = ["shm", "tcp", "verbs"]
# In the guest the root is an overlay, which cannot tell what its page cache holds.
ON_A_DISK = (
    "truncate -s 1G /var/tmp/d && mkfs.ext4 -q /var/tmp/d && mkdir /d && "
    'mount -o loop,noatime /var/tmp/d /d && exec "$@"'
)


def measure(root, _target, options):
    program = suite.built("faro-endpoint", "exits")
    rounds, operations = options.rounds, 20 if options.quick else 200
    cells = []
    with tempfile.TemporaryDirectory(prefix="faro-exits-", dir="/var/tmp") as directory:
        for fabric in FABRICS[:2]:
            command = [program, fabric, Path(directory) / fabric, rounds, operations]
            cells += guest.here(command)
    command = ["bash", "-c", ON_A_DISK, "bash", program, "verbs", "/d/verbs", rounds, operations]
    try:
        cells += guest.on_device(root, command)
    except guest.Skipped as reason:
        print(f"  verbs: skipped: {reason}")
    return cells


def section(cells):
    rows, verdicts = [], []
    for fabric in FABRICS:
        for size in sorted({c["bytes"] for c in cells if c["fabric"] == fabric}):
            of = {c["exit"]: c for c in cells if (c["fabric"], c["bytes"]) == (fabric, size)}
            rows.append([fabric, guest.size(size), *(number(of[way]["median"]) for way in EXITS)])
            if fabric == "shm":
                median = {way: of[way]["median"] for way in EXITS}
                verdicts.append([guest.size(size), *aims(median)])
    return "\n\n".join(
        [
            table(
                [
                    "fabric",
                    "bytes",
                    "READ",
                    "READ + version",
                    "cached",
                    "minor fault",
                    "major fault",
                    "disk",
                ],
                rows,
            ),
            "Aims, on shm (differences of the medians above, in µs):",
            table(
                [
                    "bytes",
                    "version check (≤ 0.1)",
                    "minor - cached (≤ 3.5)",
                    "major - minor - disk (≤ 60)",
                ],
                verdicts,
            ),
        ]
    )


def aims(median):
    found = [
        (median["read+version"] - median["read"], 0.1),
        (median["minor"] - median["resident"], 3.5),
        (median["major"] - median["minor"] - median["medium"], 60),
    ]
    return [f"{value:.2f} {'met' if value <= aim else '**missed**'}" for value, aim in found]
