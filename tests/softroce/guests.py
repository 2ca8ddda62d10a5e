"""Guests that are not possible, for the suites that need them."""

from __future__ import annotations

import pytest

# The exit code of `tests/softroce/run` where no guest is possible.
SKIPPED = 77


def no_guest(words: str) -> None:
    """Ends the whole suite as `tests/softroce/run` ends: with its exit code and its reason."""
    print(f"\n{words.strip()}", flush=True)
    pytest.exit("no guest is possible here", returncode=SKIPPED)
