"""A child process that reads and writes lines; every wait for it has a deadline."""

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path


class Broken(RuntimeError):
    """The child ended, or did not answer in time."""


class Conversation:
    def __init__(self, name, command, log, keep=None, **options):
        """`keep`: only lines that start so are answers; the rest goes nowhere."""
        self.name = name
        self.log = log
        self._keep = keep
        # It owes an answer, and reads no further line before.
        self._busy = False
        self._lines = queue.Queue()
        with Path(log).open("wb") as errors:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                **options,
            )
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self):
        return self.process.pid

    def _read(self):
        for line in self.process.stdout:
            if self._keep is None:
                self._lines.put(line.strip())
            elif line.startswith(self._keep):
                self._lines.put(line[len(self._keep) :].strip())
        self._lines.put(None)

    def answer(self, seconds):
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise Broken(f"{self.name}: no answer within {seconds} s; see {self.log}") from None
        if line is None:
            raise Broken(f"{self.name} ended; see {self.log}")
        self._busy = False
        return line

    def ask(self, line, seconds):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            raise Broken(f"{self.name} ended; see {self.log}") from None
        self._busy = True
        return self.answer(seconds)

    def stop(self, grace=5):
        """Ends it by the end of its input, and its whole group by force after `grace` seconds, or
        at once if it owes an answer."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        deadline = time.monotonic() + (0 if self._busy else grace)
        try:
            while time.monotonic() < deadline:
                if self.process.poll() is not None:
                    self._reap(os.WNOHANG)
                os.killpg(self.pid, 0)
                time.sleep(0.05)
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self._reap(0)

    def _reap(self, options):
        """Waits for orphans of the group, if this process has adopted them; a zombie would keep the
        group alive, and its CPU time would not be counted."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self.pid, options)[0]:
                pass
