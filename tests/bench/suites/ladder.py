"""The suites of the transport alone."""

from __future__ import annotations

import ladder
import links
from ladder import DISK, TMPFS
from results import Suite, Table, say

SIDES = ["netty", "faro-tcp", "faro-tcp-reader", "faro-shm", "free"]
SECURE_SIDES = ["netty-ctr", "netty-gcm", "faro-sealed", "faro-tcp", "netty"]
CLIENTS = (1, 4, 8, 16)
FIGURES = ["blocks/s", "MB/s", "CPU µs/block", "CPU ms/MB"]
RATIOS = {"MB/s to Netty's": "MB/s", "CPU to Netty's": "CPU ms/MB"}
ABOUT = (
    "An owner process serves map outputs (Spark's data and index files) to a reader process of the "
    "same host. *Netty* is Spark's NettyBlockTransferService at both ends with default settings, "
    "*Faro* the FaroBlockStoreClient on a native endpoint, *free* no transport: the reader maps "
    "the owner's files, so its CPU is the harness's own, which every other row contains too. All "
    "sides have the same requests (one reduce partition, up to 9.6 MB or 1000 blocks, 48 MB in "
    "flight) and the same consumers, which read every byte; every byte was compared outside the "
    "timed part. The sides take turns in every round, after warm-ups. CPU is the sum of both "
    "processes."
)


def options(sides, places, clients=CLIENTS):
    def add(parser):
        add = parser.add_argument
        add("--sides", nargs="+", default=sides, help=f"({' '.join(sides)})")
        add("--places", nargs="+", default=places, help="where files are: disk, tmpfs")
        add("--clients", nargs="+", type=int, default=clients, help="threads that consume")
        add("--links", nargs="+", type=float, default=[0], help="Gbit/s between owner and reader")
        add("--seconds", type=float, default=0.4, help="of a measurement (0.4)")

    return add


def measure(chosen):
    shapes = ladder.QUICK if chosen.quick else ladder.ALL
    clients, seconds = ((1, 8), 0.2) if chosen.quick else (chosen.clients, chosen.seconds)
    for gigabits in chosen.links:
        try:
            with links.linked(gigabits) as (link, speed):
                more = {"link, Gbit/s": f"{gigabits:g}", "one connection": speed} if link else {}
                for kind in chosen.places:
                    running = ladder.Ladder(chosen, shapes, chosen.sides, kind, link)
                    try:
                        for record in ladder.measure(
                            running, shapes, chosen.sides, clients, chosen.rounds, seconds
                        ):
                            yield {**more, **record}
                    finally:
                        running.close()
        except links.Unavailable as why:
            say(f"SKIPPED {gigabits:g} Gbit/s: {why}")


def tables(records):
    found = dict.fromkeys((r["files on"], r["clients"]) for r in records if "clients" in r)
    return [
        Table(
            f"All figures with {clients} client{'s' * (clients > 1)}, {where}",
            ["block", "side"],
            FIGURES,
            ratios=RATIOS,
            base=("side", "Netty, AES-CTR", "Netty"),
            only={"files on": where, "clients": clients},
        )
        for where, clients in found
    ]


def pictures(records):
    found = dict.fromkeys(r["files on"] for r in records if "files on" in r)
    return [f"![By block size](benchmarks/ladder-{where}.svg)" for where in found]


SUITES = {
    "ladder": Suite(
        "Transport ladder",
        ABOUT,
        tables,
        measure,
        options(SIDES, [DISK, TMPFS]),
        pictures,
        needs_jar=True,
    ),
    "ladder-secure": Suite(
        "Transport ladder with authentication and encryption",
        f"{ABOUT} AES-CTR is Spark's default cipher, which does not authenticate.",
        tables,
        measure,
        options(SECURE_SIDES, [TMPFS], (8,)),
        needs_jar=True,
    ),
    "link-ladder": Suite(
        "Transport ladder by kind of link",
        f"{ABOUT} Owner and reader are in network namespaces that a link of a limited rate joins; "
        "1 Gbit/s is 125 MB/s with all headers.",
        [
            Table(
                "By link",
                ["link, Gbit/s", "block", "side"],
                ["MB/s", "CPU ms/MB"],
                ["one connection"],
                RATIOS,
                ("side", "Netty"),
            )
        ],
        measure,
        lambda parser: (
            options(["netty", "faro-tcp"], [TMPFS], (8,))(parser),
            parser.set_defaults(links=[1.0, 10.0, 25.0], seconds=1.0),
        ),
        needs_jar=True,
        rounds=3,
    ),
}
