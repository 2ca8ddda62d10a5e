#!/usr/bin/env python3
"""When `make test-all` and `make test-release-candidate` last passed: tests/last-runs.

usage: last_runs.py     fails, and says why, where one is older than what a release is made of

A run that passed adds its line; the file is committed, so that everybody sees how old a full run
is. Documents may be newer than a run, nothing else. A line names the revision that the run began
with, and the phases of which nothing could run on that machine: no release counts on such a line.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "last-runs"
COMMANDS = ("test-all", "test-release-candidate")
HEADER = "# command revision date minutes machine: result\n"
# In a result, before the phases of which nothing ran.
WITHOUT = ", nothing of "


class Run(NamedTuple):
    command: str
    revision: str
    date: str
    minutes: int
    # Words, and what the run ended with.
    machine: str
    result: str

    def line(self) -> str:
        start = f"{self.command} {self.revision} {self.date} {self.minutes}"
        return f"{start} {self.machine}: {self.result}\n"


def parsed(line: str) -> Run:
    words, _, result = line.partition(": ")
    command, revision, date, minutes, machine = words.split(" ", 4)
    return Run(command, revision, date, int(minutes), machine, result.strip())


def runs() -> list[Run]:
    if not FILE.is_file():
        return []
    lines = FILE.read_text().splitlines()
    return [parsed(line) for line in lines if line and not line.startswith("#")]


def last(command: str) -> Run | None:
    return next((run for run in reversed(runs()) if run.command == command), None)


def git(*words: str) -> str:
    """What git says; nothing where there is no repository or no such revision."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}"


def is_document(path: str) -> bool:
    """Whether a file changes nothing that a test sees; pages that tests read are still pages."""
    return (
        path.endswith(".md")
        or path.startswith(("docs/images/", "docs/benchmarks/"))
        or path == "tests/last-runs"
    )


class State(NamedTuple):
    """What a run tests: a commit, and the files that differ from it."""

    revision: str
    changed: tuple[str, ...]


def state() -> State:
    words = ["status", "--porcelain", "--untracked-files=all", "--no-renames"]
    # What git says begins with the two letters of the first file, of which one may be a space.
    changed = [line[2:].strip() for line in git(*words).splitlines()]
    files = tuple(path for path in changed if not is_document(path))
    return State(git("rev-parse", "--short=12", "HEAD") or "unknown", files)


def add(command: str, began: State, minutes: float, result: str, without: list[str]) -> str:
    """Writes the line of a run that passed; what to do with it. `began`: what it began with;
    `without`: the phases of which nothing ran."""
    revision, changed = began
    ended = state()
    since = git("diff", "--name-only", "--no-renames", revision, ended.revision).splitlines()
    changed = [*changed, *ended.changed, *(path for path in since if not is_document(path))]
    if changed:
        return (
            f"tests/last-runs has no new line: {len(set(changed))} files differ from {revision}, "
            f"or did while the tests ran, such as {changed[0]}; commit them and run "
            f"'make {command}' again"
        )
    today = datetime.date.today().isoformat()
    said = result + (WITHOUT + ", ".join(without) if without else "")
    run = Run(command, revision, today, round(minutes), machine(), said)
    others = [one for one in runs() if one.command != command]
    older = [one for one in runs() if one.command == command][-4:]
    FILE.write_text(HEADER + "".join(one.line() for one in [*others, *older, run]))
    return f"tests/last-runs has a new line: commit it ({run.line().strip()})"


def said_of(command: str) -> str:
    """One line for `make test`."""
    run = last(command)
    if not run:
        return f"make {command} has no run in tests/last-runs"
    since = git("rev-list", "--count", f"{run.revision}..HEAD")
    age = f"{since} commits ago" if since else "of another history"
    return f"make {command} last passed on {run.date} at {run.revision}, {age}: {run.result}"


def too_old(command: str) -> str:
    """Why a release cannot count on the last run of a command; nothing if it can."""
    run = last(command)
    if not run:
        return f"make {command} has never passed: tests/last-runs has no line of it"
    if not git("rev-parse", "--verify", "--quiet", f"{run.revision}^{{commit}}"):
        return f"make {command} passed at {run.revision}, which this history does not have"
    missing = run.result.partition(WITHOUT)[2]
    if missing:
        return f"make {command} at {run.revision} on {run.date} could run nothing of {missing}"
    changed = git("diff", "--name-only", "--no-renames", run.revision, "HEAD").splitlines()
    # Also what is not committed: a release is made of it.
    since = [path for path in [*changed, *state().changed] if not is_document(path)]
    if since:
        return (
            f"make {command} last passed at {run.revision} on {run.date}; {len(since)} files have "
            f"changed since, such as {since[0]}"
        )
    return ""


def main() -> int:
    reasons = [reason for reason in map(too_old, COMMANDS) if reason]
    for reason in reasons:
        print(f"release: {reason}", file=sys.stderr)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
