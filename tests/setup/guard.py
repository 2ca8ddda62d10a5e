"""The one guard of all tests: it ends what makes no progress, and nothing else has a deadline.

Progress is a line that says so: a case began, a task ended, a condition was met, a test passed. A
busy machine makes such lines rarer and does not make them stop.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Callable, Protocol

# Seconds without a mark, and seconds in all.
SILENCE, CEILING = 300, 1200
EACH = 0.2


class Waited(Protocol):
    """What `subprocess.Popen` has of it."""

    def wait(self, timeout: float) -> object: ...


def any_line(_: str) -> bool:
    return True


def wait(
    process: Waited,
    log: Path,
    is_mark: Callable[[str], bool] = any_line,
    silence: float = SILENCE,
    ceiling: float = CEILING,
) -> str:
    """Waits for a process that writes into `log`: why it is late, or nothing once it has ended.

    It does not end the process. `is_mark` sees each line once, also the last ones.
    """
    started = last = time.monotonic()
    rest = ""
    ended = False
    with log.open(errors="replace") as lines:
        while True:
            text = rest + lines.read()
            *whole, rest = text.split("\n")
            now = time.monotonic()
            marks = [is_mark(line) for line in whole]
            if any(marks):
                last = now
            if ended:
                return ""
            if now - last > silence:
                return f"no progress for {silence:.0f} s"
            if now - started > ceiling:
                return f"still ran after {ceiling:.0f} s"
            try:
                process.wait(EACH)
                ended = True
            except subprocess.TimeoutExpired:
                pass
