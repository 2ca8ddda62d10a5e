"""Turns what an application printed and logged into results."""

import contextlib
import re
from dataclasses import dataclass

from . import launch, scenarios

# Of the signals by which a fault of native code ends a process: ILL, TRAP, ABRT, BUS, FPE, SEGV.
CRASHES = {128 + number for number in (4, 5, 6, 7, 8, 11)}


@dataclass
class Result:
    name: str
    passed: bool
    detail: str = ""


def cases(outcome):
    """What the application reported of its cases, in their order."""
    return [_case_result(line) for line in outcome.lines("CASE ")]


def end_problem(outcome):
    """Why the application did not end as it should; empty if it did."""
    if outcome.late:
        return outcome.late
    if fault := panicked(outcome) or crashed(outcome):
        return fault
    if len(outcome.lines("JOBS DONE")) < outcome.applications:
        return f"exit code {outcome.exit_code}: {_last_error(outcome.driver_log)}"
    # Where a case failed, it ends with 1.
    if outcome.exit_code < 0 or outcome.exit_code in CRASHES:
        return f"exit code {outcome.exit_code} after all cases"
    return ""


def problems_of(outcome, names):
    """Why an application of these cases is not what it should be, apart from Faro's counters."""
    found = [f"{case.name}: {case.detail}" for case in _failed(outcome)]
    found += [problem] if (problem := end_problem(outcome)) else []
    if len(cases(outcome)) != len(names):
        found.append(f"{len(cases(outcome))} of {len(names)} cases reported")
    return [*found, *(["there were CRC errors"] if outcome.counted("crcErrors") else [])]


def all_by_faro(outcome, executors=2):
    """Why not all blocks of other executors came through Faro."""
    blocks, left = outcome.counted("remoteBlocks"), outcome.counted("fallbacks")
    found = [] if blocks else ["no block came through Faro"]
    found += [f"{left} fall-backs"] if left else []
    count = len(outcome.summaries())
    return [*found, *([f"{count} executors wrote a summary"] if count < executors else [])]


def panicked(outcome):
    """The first line of a panic of native code in any of the logs; empty if there was none."""
    logs = {"driver": outcome.driver_log, **outcome.executor_logs}
    for name, log in logs.items():
        if found := re.search(r"^.*\bpanicked at .*$", log, re.M):
            return f"{name}: {found.group()[:300]}"
    return ""


def crashed(outcome):
    """An executor that native code has ended, as Spark's workers log it; empty if there was none.
    Spark computes again what it had, so that the answers can be right all the same."""
    ends = r"^.*: Executor (\S+) finished with state .*\bexitStatus (\d+)$"
    for executor, status in re.findall(ends, outcome.driver_log, re.M):
        if int(status) in CRASHES:
            return f"executor {executor} crashed with exit code {status}"
    return ""


def wrong_before_late(scenario, outcome):
    """What was wrong in an application that was then ended because it was late; empty: nothing that
    can be seen, so that it may be tried once more."""
    failed = [f"{case.name}: {case.detail}" for case in _failed(outcome)]
    leaked = [f"not given back: {what}" for what in outcome.waits_for((launch.OWED,))]
    secrets = _told_secrets(scenario, outcome)
    damaged = total(counters_of(outcome), "crcErrors") and "crcErrors" not in scenario.must_count
    faults = [panicked(outcome), crashed(outcome), damaged and "there were CRC errors"]
    found = [*failed, *leaked, *secrets, *faults, *_forbidden(scenario, outcome)]
    return "; ".join(filter(None, found))


def _failed(outcome):
    return [case for case in cases(outcome) if not case.passed]


def _forbidden(scenario, outcome):
    """What Faro counted or executors logged, and must not whenever one looks."""
    counters = counters_of(outcome)
    names = scenario.must_not_count
    if scenario.faro == scenarios.USED:
        names = (*names, "fallbacks")
    if scenario.faro == scenarios.DECLINED:
        names = ("remoteBlocks",)
    found = [f"{name} is {total(counters, name)}" for name in names if total(counters, name)]
    return [*found, *_logged(scenario.must_not_log, outcome)]


def _logged(pattern, outcome):
    """What executors logged and must not."""
    logs = "\n".join(outcome.executor_logs.values())
    found = re.search(f".*(?:{pattern}).*", logs) if pattern else None
    return [f"an executor logged: {found.group()[:200]}"] if found else []


def _case_result(line):
    _, name, state, *rest = line.split(" ", 3)
    rest = rest[0] if rest else ""
    return Result(name, state == "OK", f"{rest} ms" if state == "OK" else rest)


def _last_error(log):
    errors = [line for line in log.splitlines() if re.search(r"Exception|Error\b|ERROR", line)]
    return (errors[0] if errors else "no error in the driver's log")[:300]


def counters_of(outcome):
    """Sums over executors: what the metrics system said, or the summary lines where they say
    more (an executor that was replaced is only in the latter)."""
    metrics = {}
    for line in outcome.lines("COUNTERS "):
        for key, value in re.findall(r"([\w.]+)=(-?[\d.]+(?:E\d+)?)", line):
            metrics[key] = metrics.get(key, 0) + float(value)
    logged = {}
    for log in outcome.executor_logs.values():
        for key, value in (launch.summary_of(log) or {}).items():
            with contextlib.suppress(ValueError):
                logged[key] = logged.get(key, 0) + float(value)
    return {k: max(metrics.get(k, 0), logged.get(k, 0)) for k in {*metrics, *logged}}


def total(counters, name):
    """A counter, or the sum of its parts where it is counted by fabric or by reason only."""
    parts = sum(v for k, v in counters.items() if k.startswith(name + "."))
    return int(counters.get(name, parts))


def faro_result(scenario, outcome):
    counters = counters_of(outcome)
    blocks = total(counters, "remoteBlocks")
    fallbacks = total(counters, "fallbacks")
    crc_errors = total(counters, "crcErrors")
    ready = [e for e, log in outcome.executor_logs.items() if "Faro ready:" in log]
    # Counted and not asked for: when a local-cluster ends, Spark's worker stops reading an
    # executor's output before it ends the executor, so that the last lines are lost now and then.
    summaries = [e for e, log in outcome.executor_logs.items() if launch.summary_of(log)]
    seen = (
        f"{blocks} remote blocks, {fallbacks} fall-backs, {crc_errors} CRC errors; executors "
        f"{len(outcome.executor_logs)}, ready {len(ready)}, summaries {len(summaries)}"
    )
    problems = _told_secrets(scenario, outcome)
    if scenario.faro == scenarios.DECLINED:
        if blocks:
            problems.append("blocks went through Faro")
        problems += _notice_problems(scenario, outcome)
    else:
        if scenario.faro != scenarios.ANY:
            if not blocks:
                problems.append("no block went through Faro")
            if len(ready) < 2:
                problems.append("fewer than two executors logged 'Faro ready:'")
        if scenario.faro == scenarios.USED and fallbacks:
            problems.append("there were fall-backs")
        if crc_errors and "crcErrors" not in scenario.must_count:
            problems.append("there were CRC errors")
        for name in scenario.must_count:
            seen = f"{name} {total(counters, name)}; {seen}"
            if not total(counters, name):
                problems.append(f"{name} is 0")
        problems += _logged(scenario.must_not_log, outcome)
        if scenario.must_log_of_one:
            pattern = scenario.must_log_of_one
            count = sum(bool(re.search(pattern, log)) for log in outcome.executor_logs.values())
            problems += [f"{count} executors logged: {pattern}"] if count != 1 else []
        problems += [
            f"faro serve did not log: {pattern}"
            for pattern in scenario.service_must_log
            if not re.search(pattern, outcome.service_log)
        ]
        problems += [
            f"the driver did not log: {pattern}"
            for pattern in scenario.driver_must_log
            if not re.search(pattern, outcome.driver_log)
        ]
        for pattern in scenario.must_log_once:
            problems += [
                f"executor {executor} logged {count} times: {pattern}"
                for executor, log in outcome.executor_logs.items()
                if (count := len(re.findall(pattern, log))) != 1
            ]
        for name in scenario.must_not_count:
            if counters.get(name, -1) != 0:
                problems.append(f"{name} is {counters.get(name, 'not counted')}")
    return Result("faro-" + scenario.faro, not problems, "; ".join([*problems, seen]))


def _told_secrets(scenario, outcome):
    """Logs that have what no log may have."""
    if not scenario.no_log_has:
        return []
    # The first line is the harness's own: the command, with all settings.
    driver = outcome.driver_log.partition("\n")[2]
    logs = {"driver": driver, "faro serve": outcome.service_log, **outcome.executor_logs}
    return [
        f"the log of {name} has a secret"
        for name, log in logs.items()
        if re.search(scenario.no_log_has, log)
    ]


def _notice_problems(scenario, outcome):
    problems = []
    for executor, log in outcome.executor_logs.items():
        notices = [
            line
            for line in log.splitlines()
            if "Faro" in line and re.search(scenario.declined_because, line)
        ]
        if len(notices) != 1:
            problems.append(
                f"executor {executor} logged {len(notices)} times that it leaves the "
                f"shuffle to Spark because of {scenario.declined_because}"
            )
    return problems
