"""What every suite prints: a line for each test, with what it measured, and a last line of totals
that tests/run and tests/softroce/suite add up."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import defaultdict
from pathlib import Path

import pytest

# A test calls `record_property(DETAIL, "...")`; it is in the line of the test and in the JUnit XML.
DETAIL = "detail"
# The exit code after SIGTERM, as of a shell.
TERMINATED = 128 + signal.SIGTERM


def pytest_configure():
    # tests/run ends a suite by SIGINT, which a shell's background job and its children ignore.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # SIGTERM, too, runs the clean-up of the fixtures.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated", returncode=TERMINATED))


def pytest_report_teststatus(report):
    """The word in the line of a test: with its detail, or with the reason why it was skipped."""
    if report.when == "call" and report.passed:
        detail = dict(report.user_properties).get(DETAIL)
        return "passed", ".", f"ok  {detail}" if detail else "ok"
    if report.skipped and isinstance(report.longrepr, tuple):
        return "skipped", "s", f"skipped: {report.longrepr[2].removeprefix('Skipped: ')}"
    return None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Once fixtures have ended what they know of: what threads still wait for, such as a compiler,
    would go on for minutes."""
    if session.exitstatus in (pytest.ExitCode.INTERRUPTED, TERMINATED):
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def descendants(ancestor):
    """The processes that this one has started, and those that they have."""
    children = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, rest = stat.parent.name, stat.read_text().rpartition(")")[2]
            children[int(rest.split()[1])].append(int(pid))
    found = [ancestor]
    for pid in found:
        found += children[pid]
    return found[1:]


def pytest_unconfigure(config):
    """The last line of all."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.option.collectonly:
        return
    counts = {name: len(reporter.stats.get(name, [])) for name in ("passed", "failed", "error")}
    skipped = len(reporter.stats.get("skipped", []))
    failed = counts["failed"] + counts["error"]
    print(f"{counts['passed']} passed, {failed} failed" + (f", {skipped} skipped" * (skipped > 0)))
