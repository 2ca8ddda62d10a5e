"""The applications that are run: a Spark configuration, the cases to run in it, and what Faro must
have done. Cases are the Java classes under jobs/."""

from dataclasses import replace

from . import behind, cluster, jobs, memory, rows, security, settings, writer
from .model import (
    ANY,
    COMET,
    COMET_MANAGER,
    COMET_VERSION,
    DECLINED,
    FAULTY_LIBRARY,
    KEY_STORE,
    KEY_STORE_PASSWORD,
    PLUGIN,
    SCRATCH,
    USED,
    Scenario,
)

__all__ = [
    "ANY",
    "COMET",
    "COMET_MANAGER",
    "COMET_VERSION",
    "DECLINED",
    "FAULTY_LIBRARY",
    "KEY_STORE",
    "KEY_STORE_PASSWORD",
    "PLUGIN",
    "SCRATCH",
    "USED",
    "Scenario",
]

SCENARIOS = [
    *jobs.SCENARIOS,
    *rows.SCENARIOS,
    *writer.SCENARIOS,
    *cluster.SCENARIOS,
    *memory.SCENARIOS,
    *security.SCENARIOS,
    *settings.SCENARIOS,
    *behind.SCENARIOS,
]


def runs_at(scenario, depth):
    if depth == "everything":
        return not scenario.smoke
    if scenario.apart:
        return False
    if scenario.smoke:
        return depth != "full"
    if scenario.everywhere:
        return depth != "brief"
    return depth == "full" or (depth == "most" and not scenario.newest)


def can_run(scenario, version):
    major = int(version.split(".")[0])
    return scenario.version in ("", version) and major >= scenario.first_spark


def chosen(version, depth, names, stock):
    """The scenarios of a depth ('everything', 'full', 'most', 'smoke' or 'brief') on a version, or
    the named ones."""
    known = {s.name: s for s in SCENARIOS}
    unknown = [n for n in names if n not in known]
    if unknown:
        raise SystemExit(
            f"run: unknown scenario {', '.join(unknown)}; there are: {', '.join(known)}"
        )
    picked = [known[n] for n in names] or [s for s in SCENARIOS if runs_at(s, depth)]
    usable = [s for s in picked if can_run(s, version) and not (stock and s.faro_only)]
    if depth in ("everything", "full"):
        return usable
    return [replace(s, cases=[c for c in s.cases if c in (s.few or s.cases)]) for s in usable]
