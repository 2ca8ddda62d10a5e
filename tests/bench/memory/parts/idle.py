"""What giving up an idle slab costs, and its coming back."""
from measure import spread
from parts import guest
from report.figures import table, with_spread

NAME = "idle"
TITLE = "An idle slab"
ABOUT = (
    "The three steps in which a slab of 16 MiB that was written is given up (docs/memory.md), and "
    "what its coming back costs: the first use is a lease, 256 KB filled and written to a peer "
    "over the verbs fabric of the SoftRoCE guest, with the slab's new pages and its registration "
    "in it; the next use is the same write again, without the filling. Microseconds, for one slab; "
    "the median of the rounds with least and most. What is given up is paid for again by the first "
    "use: this is why a slab has to be idle for a minute.")
STEPS = [
    ("rest_us", "all its frames are withdrawn (progress thread)"),
    ("deregister_us", "the device forgets it (a thread of its own)"),
    ("give_back_us", "its pages go back to the system"),
    ("first_use_us", "first use afterwards: pages, registration, write"),
    ("next_use_us", "next use: write"),
]


def measure(root, _target, options):
    program = guest.bench(root, "faro-fabric", "memory")
    return guest.on_device(root, [program, "idle", options.rounds * 2])


def section(cells):
    return table(["step", "µs"],
                 [[text, with_spread(spread.of(cells, key))] for key, text in STEPS])
