"""The one guard of all tests: it ends what makes no progress, and nothing else has a deadline.

Progress is a line that says so: a case began, a task ended, a condition was met, a test passed. A
busy machine makes such lines rarer and does not make them stop.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Callable

# Seconds without a mark, and seconds in all.
SILENCE, CEILING = 300, 1200
EACH = 0.2


def wait(
    process: subprocess.Popen,
    log: Path,
    is_mark: Callable[[str], bool] = lambda line: True,
    silence: float = SILENCE,
    ceiling: float = CEILING,
) -> str:
    """Waits for a process that writes into `log`: why it is late, or nothing once it has ended.

    It does not end the process.
    """
    started = last = time.monotonic()
    rest = ""
    with log.open(errors="replace") as lines:
        while True:
            text = rest + lines.read()
            *whole, rest = text.split("\n")
            now = time.monotonic()
            if any(map(is_mark, whole)):
                last = now
            if now - last > silence:
                return f"no progress for {silence:.0f} s"
            if now - started > ceiling:
                return f"still ran after {ceiling:.0f} s"
            try:
                process.wait(EACH)
                return ""
            except subprocess.TimeoutExpired:
                pass
