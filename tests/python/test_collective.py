"""Processes without a JVM, torch or numpy form teams: python/faro over the C functions.

Stays because all other tests of the collectives reach them by Rust or by Java.
"""

from __future__ import annotations

import platform
import socket
import subprocess
import sys
import zipfile
from array import array

import processes
import pytest
import team_process
from processes import RANKS, Processes, environment, run


@pytest.fixture(scope="module")
def faro():
    return processes.library()


def test_means_and_sums_over_each_fabric(faro):
    results = run(faro, "means")
    assert all(result == results[0] for result in results)
    for name, found in results[0].items():
        _, _, kind, *count = name.split()
        if kind == "sum":
            columns = zip(*(team_process.start(rank, 10) for rank in range(RANKS)))
            assert found == [sum(column) for column in columns], name
            continue
        columns = zip(*(team_process.start(rank, int(count[0]), kind) for rank in range(RANKS)))
        wanted = array(kind, (sum(column) / RANKS for column in columns))
        assert found == team_process.digest(wanted), name
    assert len(results[0]) == 3 * 2 * 5


def test_groups_keep_the_mean_and_end_with_it(faro):
    results = run(faro, "groups")
    mean = sum(range(RANKS)) / RANKS
    for at in range(team_process.ROUNDS):
        values = [result["rounds"][at] for result in results]
        assert sum(values) == RANKS * mean
        if at == 0:
            # Those of one rack.
            assert values == [1.0, 2.0, 1.0, 2.0]
    assert {result["final"] for result in results} == {mean}


def test_a_mistake_names_a_rank_at_every_process(faro):
    results = run(faro, "mistakes")
    for result in results:
        assert "rank 2 (" in result["length"]
        assert "11 doubles" in result["length"]
        assert "10 doubles" in result["length"]
        assert "rank 1 (" in result["type"]
        assert "10 floats" in result["type"]
        assert "rank 3 (" in result["nan"]
        assert "brings 5 NaN, the first at element 0" in result["nan"]


def test_what_is_refused_says_what_is_allowed(faro):
    (result,) = run(faro, "refused", ranks=1)
    assert "values are 'i'" in result["integers"]
    assert "read-only True" in result["read-only"]
    assert result["closed"] == "the team was closed"
    assert "allowed: dssync, grid, full" in result["mode"]
    assert "setting" in result
    assert "spark.faro.fabric is 'pigeon', allowed: auto, verbs, tcp, shm" in result["setting"]


def test_arguments_that_differ_are_refused_everywhere(faro):
    results = run(faro, "differ")
    assert len(set(results)) == 1
    assert results[0] == (
        "rank 2: mode is 'ring', allowed: dssync, grid, full / "
        "rank 1 has seed 1, rank 0 has seed 0: every process needs the same"
    )


def test_one_process_without_the_library_tells_all(faro):
    results = run(faro, "unavailable", without=2)
    assert len(set(results)) == 1
    assert results[0].startswith("rank 2: cannot load /nonexistent/libfaro_jni.so: ")


def test_a_process_that_is_killed_is_named(faro):
    with Processes(faro, "absent") as team:
        assert {team.line(rank) for rank in range(RANKS)} == {"joined"}
        team.kill(1)
        results = team.results(but=(1,))
    for result in (results[0], results[2], results[3]):
        assert result.startswith("CollectiveError: ")
        assert "rank 1 (" in result


def test_an_interrupt_ends_a_round_that_waits(faro):
    with Processes(faro, "absent") as team:
        assert {team.line(rank) for rank in range(RANKS)} == {"joined"}
        team.interrupt(0)
        out, _ = team.running[0].communicate(timeout=processes.GUARD_SECONDS)
        assert "KeyboardInterrupt" in out
        team.kill(1)
        others = [
            team.running[rank].communicate(timeout=processes.GUARD_SECONDS) for rank in (2, 3)
        ]
    assert all("CollectiveError" in out for out, _ in others), others


def test_the_library_comes_out_of_the_jar(faro, tmp_path):
    """As in the wheel, which has the jar beside the package's files."""
    package = tmp_path / "faro"
    package.mkdir()
    for source in (processes.PACKAGE / "faro").glob("*.py"):
        (package / source.name).write_text(source.read_text())
    words = [sys.executable, "-c", "from faro import native; print(native.library()._name)"]
    given = {**environment(faro), "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    del given["FARO_LIBRARY_PATH"]

    def load():
        return subprocess.run(words, env=given, capture_output=True, text=True, check=False)

    assert "faro-spark.jar: Faro's jar comes with the wheel" in load().stderr
    jar = package / "faro-spark.jar"
    with zipfile.ZipFile(jar, "w") as made:
        made.writestr("META-INF/empty", "")
    assert f"linux-{platform.machine()}/libfaro_jni.so" in load().stderr
    with zipfile.ZipFile(jar, "w") as made:
        made.write(faro, f"META-INF/native/linux-{platform.machine()}/libfaro_jni.so")
    loaded = load()
    assert loaded.stdout.startswith(f"{tmp_path}/faro-"), loaded.stderr
    assert not list(tmp_path.glob("*.so")), "the file goes once it is loaded"


def test_a_library_that_is_not_faros_is_refused():
    words = [sys.executable, "-c", "from faro import native; native.library()"]
    given = {**environment(None), "FARO_LIBRARY_PATH": "libc.so.6"}
    done = subprocess.run(words, env=given, capture_output=True, text=True, check=False)
    assert "FaroUnavailableError: libc.so.6 is not Faro's, or too old" in done.stderr


def test_a_stranger_at_the_rendezvous_keeps_nobody_out(faro):
    """And two processes of one rank are told."""
    program = (
        "from faro.rendezvous import Rendezvous as R; print(R.from_environment().gather(b'x'))"
    )
    given = {**environment(faro), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    given["MASTER_PORT"] = port = str(processes.free_port())

    def begin(rank, **more):
        words = [sys.executable, "-c", program]
        return subprocess.Popen(
            words,
            env={**given, "RANK": rank, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    first = begin("0")
    while True:
        try:
            stranger = socket.create_connection(("127.0.0.1", int(port)))
            break
        except ConnectionRefusedError:
            assert first.poll() is None
    with stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        second = begin("1")
        assert first.communicate()[0] == second.communicate()[0] == "[b'x', b'x']\n"
    first, second = begin("0"), begin("1", WORLD_SIZE="3")
    assert "a process says that it is rank 1 of 3; rank 0 is one of 2" in first.communicate()[0]
    assert "rank 1 lost another process" in second.communicate()[0]
