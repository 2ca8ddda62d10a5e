"""The applications that are run: a Spark configuration, the cases to run in it, and what Faro must
have done. Cases are the Java classes under jobs/."""

import spark_home

from . import behind, cluster, jobs, memory, rows, security, settings, writer
from .model import (
    ALL,
    ANY,
    CANDIDATE,
    COMET,
    COMET_MANAGER,
    COMET_OLD_VERSION,
    COMET_VERSION,
    DECLINED,
    DEPTHS,
    FAULTS,
    FULL,
    KEY_STORE,
    KEY_STORE_PASSWORD,
    PLUGIN,
    SCRATCH,
    TEST,
    TIERS,
    USED,
    Scenario,
)

__all__ = [
    "ALL",
    "ANY",
    "CANDIDATE",
    "COMET",
    "COMET_MANAGER",
    "COMET_OLD_VERSION",
    "COMET_VERSION",
    "DECLINED",
    "FAULTS",
    "KEY_STORE",
    "KEY_STORE_PASSWORD",
    "PLUGIN",
    "SCRATCH",
    "SMOKE",
    "TEST",
    "TIERS",
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


# Those that tests/spark/java runs on other versions of Java: one of each kind.
SMOKE = ("smoke", "network-crypto", "ssl-rpc")


def can_run(scenario, version):
    major = int(version.name.split(".")[0])
    return scenario.version in ("", version.name) and major >= scenario.first_spark


def runs_on(scenario, version):
    """Whether a tier has it on that version; by name it runs on others too."""
    return version.depth in scenario.depths and can_run(scenario, version)


def cases_on(scenario, version):
    """Its cases on a version, which are fewer where the depth is not full."""
    few = version.depth != FULL and scenario.few
    return [case for case in scenario.cases if not few or case in few]


def tier_of(scenario, case, version):
    """The one tier of a case of a scenario that runs on that version."""
    found = [v for v in spark_home.all_versions() if runs_on(scenario, v)]
    deepest = max(found, key=lambda v: DEPTHS.index(v.depth))
    first = scenario.finds and version == deepest and case in (scenario.first or scenario.cases)
    return TEST if first else scenario.tier


def applications(*tiers):
    """The applications of these tiers together: pairs of a version and a scenario, narrowed to its
    cases there."""
    found = []
    for version in spark_home.all_versions():
        for scenario in SCENARIOS:
            if runs_on(scenario, version):
                cases = cases_on(scenario, version)
                cases = [case for case in cases if tier_of(scenario, case, version) in tiers]
                if cases:
                    found.append((version, scenario.only(cases)))
    return found


def named(names, versions, full):
    """The applications of the scenarios of these names, and of all scenarios if there are none."""
    known = {s.name: s for s in SCENARIOS}
    unknown = [n for n in names if n not in known]
    if unknown:
        raise SystemExit(
            f"run: unknown scenario {', '.join(unknown)}; there are: {', '.join(known)}"
        )
    return [
        (version, scenario if full else scenario.only(cases_on(scenario, version)))
        for version in versions
        for scenario in ([known[n] for n in names] or SCENARIOS)
        if can_run(scenario, version)
    ]
