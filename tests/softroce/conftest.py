"""What the suites around the guest of `tests/softroce/run` have in common."""

from __future__ import annotations


def pytest_addoption(parser):
    add = parser.getgroup("faro", "Guests with RDMA devices").addoption
    add("--faro", metavar="PROGRAM", help="the `faro` that tests/softroce/doctor runs")
    add("--nic", metavar="LIBRARY", help="nic.c, compiled")
    # Of tests/softroce/spark only.
    add("--guests", nargs="+", metavar="SCENARIO", default=[], help="only these scenarios")
    add("--quick", action="store_true", help="what `make test` runs")
