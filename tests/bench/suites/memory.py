"""What registered memory costs: one suite for each part, those that need a device in a guest."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from results import ROOT, Skipped, Suite, Table, built, figures, in_guest, size

# In the guest the root is an overlay, which cannot tell what its page cache holds.
ON_A_DISK = (
    "truncate -s 1G /var/tmp/d && mkfs.ext4 -q /var/tmp/d && mkdir /d && "
    'mount -o loop,noatime /var/tmp/d /d && exec "$@"'
)
GUEST_SECONDS = 900
MODES = ["unpinned", "pinned", "odp"]
PARTS = ["sweep", "storage", "start"]


def named(records):
    """With the size of a block as a name."""
    for record in records:
        yield {**record, **({"bytes": size(record["bytes"])} if "bytes" in record else {})}


def lease(chosen):
    seconds = 0.1 if chosen.quick else 0.5
    yield from named(figures([built("faro-pool", "lease"), chosen.rounds, seconds]))


def on_device(part, times=1, memory="4G"):
    def measure(chosen):
        command = [built("faro-fabric", "memory"), part, chosen.rounds * times]
        yield from named(in_guest(1, command, GUEST_SECONDS, memory=memory))

    return measure


def exits(chosen):
    program, few = built("faro-endpoint", "exits"), [chosen.rounds, 20 if chosen.quick else 200]
    with tempfile.TemporaryDirectory(prefix="faro-exits-", dir="/var/tmp") as place:
        for fabric in ("shm", "tcp"):
            yield from named(figures([program, fabric, Path(place, fabric), *few]))
    command = ["bash", "-c", ON_A_DISK, "bash", program, "verbs", "/d/verbs", *few]
    try:
        yield from named(in_guest(1, command, GUEST_SECONDS, memory="4G"))
    except Skipped as reason:
        print(f"verbs: skipped: {reason}")


def share(chosen):
    program = built("faro-endpoint", "arena_share")
    with tempfile.TemporaryDirectory(prefix="faro-share-", dir="/dev/shm") as place:
        for fabric in ("shm", "tcp"):
            command = [program, fabric, Path(place, fabric), min(chosen.rounds, 3)]
            yield from named(figures([*command, 400] if chosen.quick else command))


def fault_options(parser):
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(all)")
    parser.add_argument(
        "--megabytes", nargs="+", type=int, default=[100, 600, 2_000], help="of an output to start"
    )


def faults(chosen):
    program, rounds = built("faro-endpoint", "faults", features="research"), chosen.rounds
    with tempfile.TemporaryDirectory(prefix="faro-faults-", dir="/var/tmp") as place:
        for part in chosen.parts:
            if part != "start":
                yield from named(figures([program, part, "tcp", Path(place, part), rounds]))
    for part in chosen.parts:
        # On a tmpfs, which holds the largest output.
        place = "/dev/shm/start" if part == "start" else "/d/faults"
        sizes = [20] if chosen.quick else chosen.megabytes
        for more in [[one] for one in sizes] if part == "start" else [[]]:
            command = [program, part, "verbs", place, rounds, *more]
            on_disk = ["bash", "-c", ON_A_DISK, "bash", *command]
            yield from named(in_guest(1, on_disk, GUEST_SECONDS, memory="8G"))


def modes(chosen):
    """The same Spark job with each mode, over RDMA in a guest."""
    logs = ROOT / "target" / "test-logs" / "softroce" / "spark"
    for _ in range(min(chosen.rounds, 3)):
        for mode in MODES:
            done = subprocess.run(
                [ROOT / "tests" / "softroce" / "spark", f"regions-{mode}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            if done.returncode == 77:
                raise Skipped("no guest with an RDMA device")
            if done.returncode:
                found = re.findall(r"^FAILED \S.*? - (?:Failed: )?(.{1,200})", done.stdout, re.M)
                yield {"regions": mode, "failed": (found or ["no reason was given"])[0]}
                continue
            out = (logs / f"regions-{mode}" / "driver.out").read_text()
            hook = (logs / f"regions-{mode}" / "hook.log").read_text()
            yield {
                "regions": mode,
                "job, s": int(re.search(r"^CASE largeShuffle OK (\d+)", out, re.M)[1]) / 1e3,
                "registering, ms": sum(counted(out, "pool.registrationNanos")) / 1e6,
                "registered, MB": max(counted(out, "pool.registeredHighWaterBytes")) / 1e6,
                "RSS, MB": max(map(int, re.findall(r"VmHWM:\s+(\d+) kB", hook))) / 1024,
            }


def counted(out, name):
    found = re.findall(rf"^COUNTERS .*?[{{ ]{re.escape(name)}=([\d.E]+)", out, re.M)
    return [float(value) for value in found]


SUITES = {
    "memory-lease": Suite(
        "A lease of the arena",
        "One lease is taken and returned repeatedly, by one thread and by two at once on the same "
        "pool; nothing is written into it. *malloc* is `Vec::with_capacity` and its drop, in turn. "
        "Nanoseconds of a thread's processor time for one pair.",
        [Table("By size", ["bytes", "threads", "side"], ["ns"], ["slabs_mapped"])],
        lease,
    ),
    "memory-registration": Suite(
        "Registering memory",
        "`ibv_reg_mr` and `ibv_dereg_mr` of memory that was written before, on the software device "
        "of the guest. The cost of every device has this shape; the figures say nothing about a "
        "NIC.",
        [Table("By size", ["bytes"], ["register_us", "deregister_us"], ["refused"])],
        on_device("registration", 4, "8G"),
    ),
    "memory-transfer": Suite(
        "Registering, end to end",
        "A sender writes 64 objects, each 8 times, into a peer's memory by RDMA WRITE with 16 in "
        "flight, both in one process of the guest. *per block*: registered for each write; *lazy*: "
        "at an object's first write; *eager*: when it is made; *slab*: leases of the arena. "
        "Microseconds for one write or one object.",
        [
            Table(
                "By size",
                ["bytes", "mode"],
                ["all_us"],
                ["prepare_us", "first_us", "later_us", "release_us", "registrations"],
                {"relative to slab": "all_us"},
                ("mode", "eager, slab"),
            )
        ],
        on_device("transfer"),
    ),
    "memory-idle": Suite(
        "An idle slab",
        "A slab of 16 MiB that was written is released in three steps and used again, over the "
        "verbs fabric of the guest; microseconds for one slab.",
        [
            Table(
                "By step",
                [],
                ["rest_us", "deregister_us", "give_back_us", "first_use_us", "next_use_us"],
            )
        ],
        on_device("idle", 2),
    ),
    "memory-exits": Suite(
        "A read, by where its bytes are",
        "One endpoint fetches one block from another, both in one program, one request at a time. "
        "*read*: a plain one-sided read; *read+version*: with a read of 8 bytes after it; "
        "*resident*: in the chunk cache, written by the owner; *pulled*: there, and read by the "
        "other one; *minor*: in the page cache; *major*: on the disk; "
        "*medium*: the same bytes by `pread`. Microseconds.",
        [Table("By exit", ["fabric", "bytes", "exit"], ["median"])],
        exits,
    ),
    "memory-faults": Suite(
        "Bytes that are not in memory, and memory that is pinned",
        "One endpoint fetches blocks of one map output from another, both in one program; over "
        "verbs in a guest. *On the medium*: of 256 blocks that are far apart, so many are not in "
        "the page cache (the host's disk, a loop device in the guest); the others are. *Storage*: "
        "400 blocks of an output of 160 MiB on that disk, one request at a time, with an arena of "
        "a fifth of it and with one of three times its size; *memory*: after three passes, so that "
        "an arena has what it can. *Start*: from the start of both "
        "endpoints to the first block and to the last one of an output on a tmpfs, in blocks of "
        "1 MB; registering is the server's.",
        [
            Table(
                "By the share of blocks on the medium",
                ["fabric", "bytes", "on the medium, %"],
                ["one at a time, µs", "16 at once, µs"],
            ),
            Table(
                "Storage: an output five times the arena",
                ["fabric", "bytes", "where", "arena, MiB"],
                ["mean, µs", "99 %, µs"],
                [],
                {"to the large arena": "mean, µs"},
                ("arena, MiB", 512),
            ),
            Table(
                "Start: unpinned beside pinned",
                ["MB", "regions"],
                ["first byte, ms", "last byte, ms"],
                ["registering, ms", "registered, MB", "leased, MB"],
                {"last byte / pinned": "last byte, ms", "registered / pinned": "registered, MB"},
                ("regions", "pinned"),
            ),
        ],
        faults,
        fault_options,
        rounds=3,
    ),
    "memory-share": Suite(
        "A shuffle larger than the arena",
        "One endpoint reads every block of a shuffle from another, twice, as reducers request "
        "them; the second pass is timed. The owner's arena is 1, 10 and 100 % of the shuffle, "
        "which is on a tmpfs, and at least 32 MiB; one peer may have a 32nd of it on its way, so "
        "1 MiB there. MB/s, and the reads of both passes by where their bytes were.",
        [
            Table(
                "By part of the arena",
                ["fabric", "bytes", "share"],
                ["median"],
                ["least", "most", "resident", "minor", "major"],
            )
        ],
        share,
    ),
    "memory-modes": Suite(
        "Unpinned, pinned, on-demand paging: one Spark job",
        "Two executors on two hosts of a guest run a shuffle of 576 MB and one of 96 MB, all over "
        "RDMA, by `spark.faro.regions`. *Registering*: in both executors; *registered*: the most "
        "at once; *RSS*: the larger process. rxe copies wrong bytes out of an odp region "
        "(decision 009); the checksum refuses them.",
        [
            Table(
                "By mode",
                ["regions"],
                ["job, s", "registering, ms", "registered, MB", "RSS, MB"],
                [],
                {"job / pinned": "job, s", "registered / pinned": "registered, MB"},
                ("regions", "pinned"),
            )
        ],
        modes,
        rounds=3,
    ),
}
