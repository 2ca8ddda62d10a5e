"""Measures a lease from the arena."""

import suite
from measure import spread
from report.figures import number, table, with_spread

from parts import guest

NAME = "lease"
TITLE = "A lease of the arena"
ABOUT = (
    "One lease is taken and returned repeatedly, by one thread and by two threads at once on "
    "the same pool. Nothing is written into it. *malloc* is `Vec::with_capacity` and its drop "
    "in the same program, in turn: ordinary memory that is not registered with a device "
    "(glibc keeps 256 KB in a mapping of its own or in the heap). A single 4 KB lease splits "
    "a page and joins it again each time. A figure is the processor time of a thread for one "
    "pair of take and return, in nanoseconds. Other work on the machine does not count, but "
    "its effect on the caches does. Figures are medians of the rounds, with the lowest and "
    "highest in parentheses. In the steady state nothing is mapped and therefore nothing is "
    "registered: the last column counts slabs mapped while measuring, after the first round."
)
AIM_NS = 50


def measure(_root, _target, options):
    program = suite.built("faro-pool", "lease")
    return guest.here([program, options.rounds, 0.1 if options.quick else 0.5])


def section(cells):
    rows = []
    shapes = sorted({(cell["bytes"], cell["threads"]) for cell in cells})
    for size, threads in shapes:
        these = [c for c in cells if (c["bytes"], c["threads"]) == (size, threads)]
        ours = [c for c in these if c["side"] == "arena"]
        theirs = [c for c in these if c["side"] == "malloc"]
        steady = sum(c["slabs_mapped"] for c in ours if c["round"] > 0)
        rows.append(
            [
                guest.size(size),
                threads,
                with_spread(spread.of(ours, "ns")),
                with_spread(spread.of(theirs, "ns")),
                steady,
            ]
        )
    alone = {
        size: spread.of(
            [c for c in cells if c["side"] == "arena" and c["bytes"] == size and c["threads"] == 1],
            "ns",
        )[0]
        for size, _ in shapes
    }
    verdicts = [
        f"{guest.size(size)}: {number(ns)} ns, {'met' if ns <= AIM_NS else '**missed**'}"
        for size, ns in alone.items()
    ]
    return "\n\n".join(
        [
            table(["bytes", "threads", "arena, ns", "malloc, ns", "slabs mapped"], rows),
            f"Aim: at most {AIM_NS} ns uncontended. {'; '.join(verdicts)}.",
        ]
    )
