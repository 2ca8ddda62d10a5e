"""What a guest's kernel says of itself, and what it needs around it."""

from __future__ import annotations

import subprocess

# User-mode Linux 7.2 and 7.3 can forget to unmap pages (seen with 7.2.12). The process then reads
# and writes memory that the kernel has given to other pages. In `arch/um/kernel/tlb.c`:
# - `madvise(MADV_DONTNEED)` on more pages than one gather holds (some 40 MB) marks a range that
#   ends within a page table. CONFIG_PT_RECLAIM frees the table.
# - If another thread runs before the rest is marked, `um_tlb_sync` unmaps up to the end of the mark
#   and notes that the whole table is done.
# CONFIG_PT_RECLAIM cannot be turned off there. build-kernel applies unmappings.patch.
FREES_TABLES = "CONFIG_PT_RECLAIM=y"
# The patch adds this option.
IS_PATCHED = "CONFIG_FARO_UNMAPS_WHOLE_TABLES=y"
# glibc trims its arenas by that call, so with such a kernel it does not trim them. A threshold that
# is set ends glibc's adjusting of the other one, so that is set to the largest to which glibc would
# go.
MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}


class NoGuest(Exception):
    """A file that is not a kernel for guests; the reason."""


def options(kernel: str) -> set[str]:
    """The lines of the configuration that the kernel was built with."""
    try:
        done = subprocess.run(
            [kernel, "--showconfig"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoGuest(f"'{kernel} --showconfig' failed: {error}") from error
    lines = set(done.stdout.splitlines())
    if done.returncode or "CONFIG_UML=y" not in lines:
        raise NoGuest(
            f"'{kernel} --showconfig' ended with {done.returncode} and without CONFIG_UML=y: "
            "this is no user-mode Linux"
        )
    return lines


def loses_unmappings(kernel: str) -> bool:
    found = options(kernel)
    return FREES_TABLES in found and IS_PATCHED not in found


def environment(kernel: str) -> dict[str, str]:
    """What commands get where the kernel needs a way around a defect."""
    return dict(MALLOC) if loses_unmappings(kernel) else {}
