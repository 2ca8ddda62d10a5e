"""What is wrong in Spark over RDMA, whatever its cases say: tests/softroce/test_spark.py."""

from __future__ import annotations

import attempts
import pytest
import test_spark as rdma
from spark_scenarios import Scenario

LATE = "no progress for 300 s"
ENDED = "26/11/28 INFO Worker: Executor app-1/0 finished with state EXITED message x exitStatus "


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a scenario of one case, whose guest leaves these files behind."""
    monkeypatch.setattr(rdma, "LOGS", tmp_path)
    monkeypatch.setattr(rdma.launch, "short_lived_options", lambda _: "")

    def run(files, late="", code=0):
        def attempt(_command, log, *_, **__):
            log.write_text("")
            for name, text in {"driver.out": "CASE groupByKey OK 1\n", **files}.items():
                path = tmp_path / "a" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return attempts.Ended(code, late, 1)

        monkeypatch.setattr(attempts, "run", attempt)
        return rdma.run(Scenario("a", ["groupByKey"]), tmp_path, tmp_path, tmp_path, None)

    return run


WRONG = {
    "a panic": {"work/h1/app-1/0/stderr": "thread 'x' panicked at src/a.rs:1\n"},
    "a crash": {"worker-h1.log": f"{ENDED}139\n"},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_fault_of_native_code_is_wrong(run, what):
    assert not min(run(WRONG[what]).results[rdma.ENDS])[0]
    assert not run(WRONG[what], late=LATE, code=-9).late


def test_damage_is_wrong_also_where_it_was_late(run):
    files = {"driver.out": "CASE groupByKey OK 1\nCOUNTERS 0 {crcErrors=1.0}\n"}
    assert not run(files, late=LATE, code=-9).late


def test_an_executor_that_was_killed_is_no_fault(run):
    killed = {"worker-h1.log": f"{ENDED}137\n"}
    assert min(run(killed).results[rdma.ENDS])[0]
    assert run(killed, late=LATE, code=-9).late == LATE
