#!/usr/bin/env python3
"""The test cases that may fail for a while: tests/quarantine, which says how it is written.

Run as a program it names those that are older than 14 days, and fails if there is one.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).resolve().parents[1] / "quarantine"
MOST = 5
OLD_DAYS = 14


class Entry(NamedTuple):
    case: str
    since: datetime.date
    reason: str

    def __str__(self) -> str:
        return f"{self.case}, since {self.since}: {self.reason}"


def entries() -> list[Entry]:
    found = []
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            try:
                case, date, reason = line.split(None, 2)
                found.append(Entry(case, datetime.date.fromisoformat(date), reason))
            except ValueError as error:
                sys.exit(f"tests/quarantine:{number}: '{line}' is not CASE DATE REASON: {error}")
    if len({entry.case for entry in found}) > MOST:
        sys.exit(f"tests/quarantine: {len(found)} cases, at most {MOST} are possible")
    return found


def old() -> list[Entry]:
    last = datetime.date.today() - datetime.timedelta(OLD_DAYS)
    return [entry for entry in entries() if entry.since < last]


if __name__ == "__main__":
    for entry in old():
        print(f"in quarantine for more than {OLD_DAYS} days: {entry}", file=sys.stderr)
    sys.exit(1 if old() else 0)
