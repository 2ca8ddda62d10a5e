"""The policies of the exchange: over real verbs in a guest, over TCP in network namespaces."""

from __future__ import annotations

import os
from pathlib import Path

from results import Skipped, Suite, Table, built, figures, in_guest

GUEST = Path(__file__).resolve().parents[1] / "exchange" / "guest"
HERE = GUEST.with_name("here")
# Over verbs, by endpoints: rate of each link, bytes of each pair, requests of each pair.
SETTINGS = {
    4: ("50mbit", 1 << 20, 4),
    9: ("50mbit", 1 << 19, 4),
    16: ("50mbit", 1 << 19, 4),
    25: ("50mbit", 1 << 16, 1),
    36: ("50mbit", 1 << 16, 1),
}
# Over TCP: endpoints, and bytes in flight: little, and the most that the default arena lets wait,
# which is all here.
SIZES = (16, 25, 36, 49, 64)
IN_FLIGHT = (1 << 20, 112 << 20)
# There are no slow links, because only bytes and bounds are checked.
QUICK = {4: ("", 256 << 10, 2)}


def options(parser):
    add = parser.add_argument
    add("--binary", type=Path, help="the program `alltoall`, built (builds it)")
    add("--places", nargs="+", choices=["guest", "here"], default=["guest", "here"])
    add("--sizes", nargs="+", type=int, default=SIZES, help="endpoints over TCP")
    # More take minutes for each policy: the guest has one processor.
    small = [4, 9, 16]
    add(
        "--guest-sizes", nargs="+", type=int, choices=SETTINGS, default=small, help="and over verbs"
    )
    add("--repeat", type=int, default=10, help="exchanges after one that connects (10)")
    # A lost packet costs these devices a second in which no data moves.
    add("--slice-ms", type=int, default=2000, help="spark.faro.exchange.slice in the guest (2000)")


def measure(chosen):
    # The quick run is a test, so it uses the debug build of the other tests.
    program = chosen.binary or built("faro-endpoint", "alltoall", release=not chosen.quick)
    if "guest" in chosen.places or chosen.quick:
        yield from over_verbs(chosen, program)
    if "here" in chosen.places and not chosen.quick:
        yield from over_tcp(chosen, program)


def over_tcp(chosen, program):
    if os.geteuid() != 0:
        raise Skipped("network namespaces need root")
    for hosts in chosen.sizes:
        for in_flight in IN_FLIGHT:
            words = [HERE, hosts, Path(program).resolve(), "--rounds", chosen.rounds]
            words += ["--repeat", chosen.repeat, "--slice-ms", 20, "--bytes", 1 << 17]
            words += ["--maps", 4, "--rate", "20mbit", "--in-flight", in_flight]
            words += ["--policies", "auto", "grouped", "rotated", "random"]
            for cell in figures(words):
                yield {**cell, "bytes of a pair": 1 << 17, "exchanges": chosen.repeat + 1}


def over_verbs(chosen, program):
    repeat = 7 if chosen.quick else chosen.repeat
    settings = QUICK if chosen.quick else {n: SETTINGS[n] for n in chosen.guest_sizes}
    for hosts, (rate, size, maps) in settings.items():
        words = [GUEST, Path(program).resolve(), "--hosts", hosts, "--rounds", chosen.rounds]
        words += ["--repeat", repeat, "--slice-ms", chosen.slice_ms, "--bytes", size]
        words += ["--maps", maps, *(["--rate", rate] if rate else [])]
        # The guest has one processor: with two, sixteen hosts have ended the user-mode kernel.
        for cell in in_guest(hosts, words, 3600, cpus=1):
            lost = cell.get("completer_retry_err", 0) + cell.get("out_of_seq_request", 0)
            yield {**cell, "bytes of a pair": size, "exchanges": repeat + 1, "lost": lost}


def check(records):
    """One line for each thing that is tested, with counts as tests/softroce/suite reads them."""
    bad = 0
    for cell in records:
        problems = [cell["failed"]] if "failed" in cell else []
        others = cell["endpoints"] - 1
        wanted = cell["exchanges"] * cell["endpoints"] * others * cell["bytes of a pair"]
        if not problems and not cell["verbs_bytes"] == cell["bytes"] == wanted:
            problems.append(f"{cell['verbs_bytes']} of {wanted} bytes over verbs")
        if not problems and not (1 <= cell["active"] <= others and 1 <= cell["fan_in"] <= others):
            problems.append(f"{cell['active']} active peers, fan-in {cell['fan_in']}")
        print(f"{cell['policy']} {cell['endpoints']} endpoints: {'; '.join(problems) or 'ok'}")
        bad += bool(problems)
    print(f"{len(records) - bad} passed, {bad} failed")
    return 1 if bad or not records else 0


SUITES = {
    "exchange": Suite(
        "Measured over real verbs, and over TCP",
        "Over verbs: endpoints in network namespaces of one user-mode Linux guest of 1 processor, "
        "each with a software RDMA device (rdma_rxe). Over TCP: in network namespaces of this "
        "machine. All links have the same rate in both directions; the switch port before a reader "
        "keeps 256 KiB and drops the rest. Every endpoint reads the same amount from every other "
        "one, all at once, and checks it; the policies take turns. *Drops* are the ports', *lost* "
        "what the devices count when packets are missing.",
        [
            Table(
                "By endpoints",
                ["fabric", "endpoints", "MiB in flight", "policy"],
                ["seconds"],
                ["active", "fan_in", "pairs", "drops", "lost"],
                {"to random": "seconds"},
                ("policy", "random"),
            )
        ],
        measure,
        options,
        check=check,
        folder="design/scaling",
    )
}
