"""Starts the processes of a team, each with the variables that a launcher sets."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import native_build

HERE = Path(__file__).resolve().parent
PACKAGE = native_build.ROOT / "python"
RANKS = 4
# Ends a run that does not; no test takes a tenth of it.
GUARD_SECONDS = 240


def library() -> Path:
    """The native library of the one build of tests; $FARO_LIBRARY_PATH names another one."""
    if "FARO_LIBRARY_PATH" in os.environ:
        return Path(os.environ["FARO_LIBRARY_PATH"]).resolve()
    native_build.programs(native_build.WITHOUT_TESTS)
    target = Path(os.environ.get("CARGO_TARGET_DIR", native_build.ROOT / "target"))
    return target / "debug" / "libfaro_jni.so"


def environment(faro: Path | None) -> dict[str, str]:
    """That of a process; without a library where `faro` is none."""
    paths = [str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    given["FARO_LIBRARY_PATH"] = str(faro) if faro else "/nonexistent/libfaro_jni.so"
    return given


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Processes:
    """The processes of one case of team_process.py."""

    def __init__(self, faro: Path, case: str, ranks: int = RANKS, without: int | None = None):
        port = str(free_port())
        self.running = []
        for rank in range(ranks):
            given = environment(None if rank == without else faro)
            given.update(RANK=str(rank), WORLD_SIZE=str(ranks))
            given.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            words = [sys.executable, HERE / "team_process.py", case]
            self.running.append(
                subprocess.Popen(
                    words, env=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                )
            )

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

    def line(self, rank: int) -> str:
        """The next line that a process prints."""
        return self.running[rank].stdout.readline().strip()

    def interrupt(self, rank: int) -> None:
        self.running[rank].send_signal(signal.SIGINT)

    def kill(self, rank: int) -> None:
        self.running[rank].kill()

    def results(self, but: tuple[int, ...] = ()) -> list:
        """What each process printed last, as JSON, by rank; none of those that were killed."""
        found = []
        for rank, process in enumerate(self.running):
            out, error = process.communicate(timeout=GUARD_SECONDS)
            if rank in but:
                found.append(None)
                continue
            assert process.returncode == 0, f"rank {rank}: {error}"
            found.append(json.loads(out.splitlines()[-1]))
        return found


def run(faro: Path, case: str, **options) -> list:
    with Processes(faro, case, **options) as processes:
        return processes.results()
