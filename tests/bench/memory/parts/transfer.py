"""Measures the cost of registering memory end to end, by the time at which it is done."""

import suite
from measure import spread
from report.figures import number, table, with_spread

from parts import guest

NAME = "transfer"
TITLE = "Registering, end to end"
ABOUT = (
    "A sender writes 64 objects, each 8 times, into a peer's memory by RDMA WRITE over the "
    "verbs fabric, with 16 writes in flight. Both ends are in one process of the SoftRoCE "
    "guest. The modes:\n\n"
    "- *per block*: the sender's own memory, registered for each write and de-registered "
    "after it\n"
    "- *lazy, per object*: separate memory for each object, registered at the first write "
    "from it\n"
    "- *eager, per object*: the same, registered when the object is made\n"
    "- *eager, slab*: leases of the arena, whose slabs are registered already\n\n"
    "All modes make and fill their objects first. The modes take turns in every round. "
    "Figures are microseconds for one write or one object, medians of the rounds; the total "
    "also has the lowest and highest in parentheses. All modes write through the same device, "
    "so the difference is the cost of registering."
)
WRITES = 64 * 8
MODES = ["per block", "lazy, per object", "eager, per object", "eager, slab"]


def measure(root, _target, options):
    program = suite.built("faro-fabric", "memory")
    return guest.on_device(root, [program, "transfer", options.rounds])


def section(cells):
    rows = []
    for size in sorted({cell["bytes"] for cell in cells}):
        slab = None
        for mode in reversed(MODES):
            these = [c for c in cells if (c["bytes"], c["mode"]) == (size, mode)]
            figures = {
                key: spread.of(these, key)
                for key in (
                    "prepare_us",
                    "first_us",
                    "later_us",
                    "release_us",
                    "registrations",
                    "all_us",
                )
            }
            slab = slab or figures["all_us"][0]
            spent = [c["registration_us"] / WRITES for c in these]
            rows.append(
                [
                    guest.size(size),
                    mode,
                    *(
                        number(figures[key][0])
                        for key in ("prepare_us", "first_us", "later_us", "release_us")
                    ),
                    int(figures["registrations"][0]),
                    number(spread.median(spent)),
                    with_spread(figures["all_us"]),
                    f"{figures['all_us'][0] / slab:.2f}x",
                ]
            )
    return "\n\n".join(
        [
            table(
                [
                    "bytes",
                    "mode",
                    "make, fill",
                    "first write",
                    "later writes",
                    "release",
                    "registrations",
                    "of this registering, per write",
                    "total, per write",
                    "relative to slab",
                ],
                rows,
            ),
            (
                "*Later writes* is the steady state. A slab needs no registration there, and "
                "lazy and eager objects that are kept need none either."
            ),
        ]
    )
