"""Measures the cost of releasing an idle slab and of activating it again."""

import suite
from measure import spread
from report.figures import table, with_spread

from parts import guest

NAME = "idle"
TITLE = "An idle slab"
ABOUT = (
    "A slab of 16 MiB that was written is released in three steps (docs/user/memory.md). The table "
    "shows these steps and the cost of using the slab again. The first use takes a lease, "
    "fills 256 KB and writes them to a peer over the verbs fabric of the SoftRoCE guest; it "
    "includes the slab's new memory and its registration. The next use is the same write "
    "again, without the filling. Figures are microseconds for one slab, medians of the "
    "rounds, with the lowest and highest in parentheses. The first use pays for the release. "
    "This is why a slab is released only after it has been idle for a minute."
)
STEPS = [
    ("rest_us", "all its pages are withdrawn (progress thread)"),
    ("deregister_us", "the device de-registers it (deregistration thread)"),
    ("give_back_us", "its memory goes back to the operating system"),
    ("first_use_us", "first use afterwards: new memory, registration, write"),
    ("next_use_us", "next use: write"),
]


def measure(root, _target, options):
    program = suite.built("faro-fabric", "memory")
    return guest.on_device(root, [program, "idle", options.rounds * 2])


def section(cells):
    return table(
        ["step", "µs"], [[text, with_spread(spread.of(cells, key))] for key, text in STEPS]
    )
