"""The parts of the suite `memory`, in the order in which they are measured and written.

A part is a module with NAME, TITLE, ABOUT, `measure(root, target, options) -> cells` and
`section(cells) -> text`. A new part needs a file here and a place in the list.
"""

from parts import arena_share, exits, idle, lease, modes, registration, transfer
from parts.guest import Skipped

PARTS = [lease, registration, transfer, idle, exits, arena_share, modes]

__all__ = ["PARTS", "Skipped"]
