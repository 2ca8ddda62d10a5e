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


def entries(path: Path = LIST) -> list[Entry]:
    """Raises ValueError, which names the line and the value, where something is wrong with one."""
    found: list[Entry] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        at = f"{path.name}:{number}"
        case, date, reason = [*text.split(None, 2), "", ""][:3]
        if not reason:
            raise ValueError(f"{at}: '{text}' is not CASE DATE REASON")
        try:
            since = datetime.date.fromisoformat(date)
        except ValueError:
            raise ValueError(f"{at}: '{date}' is no date such as 2026-11-27") from None
        if since > datetime.date.today() + datetime.timedelta(1):
            raise ValueError(f"{at}: '{date}' is yet to come")
        if case in {entry.case for entry in found}:
            raise ValueError(f"{at}: '{case}' stands there twice")
        found.append(Entry(case, since, reason))
    if len(found) > MOST:
        cases = ", ".join(entry.case for entry in found)
        raise ValueError(f"{path.name}: {len(found)} cases, at most {MOST} are possible: {cases}")
    return found


def older_than(days: int, path: Path = LIST) -> list[Entry]:
    last = datetime.date.today() - datetime.timedelta(days)
    return [entry for entry in entries(path) if entry.since < last]


def main() -> int:
    try:
        old = older_than(OLD_DAYS)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for entry in old:
        print(f"in quarantine for more than {OLD_DAYS} days: {entry}", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
