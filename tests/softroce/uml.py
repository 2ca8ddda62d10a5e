"""The guest as a process: its settings, its output, its end."""

import contextlib
import ctypes
import fcntl
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import kernels

TOOLS = Path(__file__).resolve().parent / "guest"
# Exit codes of the runner's own.
BROKEN, SKIPPED, LATE = 125, 77, 124
# Seconds for booting, setting hosts up and ending, beside the command's own.
AROUND = 60
PREFIX = "faro-softroce-"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# A sparse file: what the command may write in all.
UPPER_BYTES = 32 << 30
MKFS = "-q -F -m 0 -O ^has_journal,^resize_inode -E lazy_itable_init=1,nodiscard"


class Broken(Exception):
    """A guest should run on this machine, but it does not; the reason."""


class Impossible(Exception):
    """No guest can run on this machine; the reason."""


def run(options, kernel):
    """The exit code of the command."""
    try:
        around_defects = kernels.environment(kernel)
    except kernels.NoGuest as error:
        raise Broken(str(error)) from error
    sweep()
    exchange = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = (exchange / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        mark = b"\0softroce" + secrets.token_hex(16).encode()
        write_settings(exchange, options, mark, around_defects)
        make_disk(exchange / "disk")
        guest = Guest(command_line(options, kernel, exchange), exchange, mark)
        late = not guest.follow(options.timeout + AROUND)
        code = status(exchange)
        if options.kernel_log:
            shutil.copyfile(exchange / "console", options.kernel_log)
        if late:
            say(
                f"the guest was stopped after {options.timeout + AROUND} s; the end of its console:"
            )
            tail(exchange / "console")
            return LATE
        if code is None:
            broken = exchange / "broken"
            say(
                broken.read_text().strip()
                if broken.exists()
                else "the guest ended without a status; its console:"
            )
            tail(exchange / "console")
            return BROKEN
        if code == LATE:
            say(f"the command ended with {LATE}, as after more than {options.timeout} s")
        if code == 128 + signal.SIGKILL:
            for line in (exchange / "console").read_text(errors="replace").splitlines():
                if "Out of memory" in line:
                    say(f"{line.strip()}; the guest has --memory {options.memory >> 20}M")
        return code
    finally:
        shutil.rmtree(exchange, ignore_errors=True)


def say(words):
    print(f"softroce: {words}", file=sys.stderr, flush=True)


def tail(path, lines=40):
    words = path.read_text(errors="replace").splitlines()[-lines:]
    print("\n".join("  " + line for line in words), file=sys.stderr, flush=True)


def status(exchange):
    try:
        return int((exchange / "status").read_text())
    except (FileNotFoundError, ValueError):
        return None


def sweep():
    """Removes the folders of runners that were killed."""
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            with (old / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
        except OSError:
            # Another runner's, or one that has just made its directory.
            continue


def write_settings(exchange, options, mark, around_defects):
    netem = [
        word
        for name in ("loss", "delay", "rate")
        for word in (name, getattr(options, name))
        if getattr(options, name)
    ]
    merged = os.path.sameopenfile(1, 2)
    values = {
        "hosts": options.hosts,
        "mtu": options.mtu,
        "memlock": options.memlock,
        "timeout": options.timeout,
        "netem": " ".join(netem),
        "user": options.user or "",
        "merged": int(merged),
        "tools": str(TOOLS),
    }
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in values.items()]
    # Bash has no NUL in strings, so `printf %b` writes it.
    lines.append(f"mark={shlex.quote(mark.decode()[1:])}")
    lines.append("kept=(" + " ".join(shlex.quote(str(d)) for d in options.keep) + ")")
    (exchange / "settings").write_text("\n".join(lines) + "\n")
    # Words such as `_` or `BASH_FUNC_x%%` are not for `export`.
    exports = "\n".join(
        f"export {name}={shlex.quote(value)}"
        for name, value in {**around_defects, **os.environ}.items()
        if name.isidentifier() and name != "_"
    )
    (exchange / "command").write_text(
        f"unset ${{!faro_*}}\n{exports}\n"
        f"export PATH=/run/faro/tools:$PATH FARO_SOFTROCE_GUEST=1\n"
        f"cd {shlex.quote(str(Path.cwd()))} && exec {shlex.join(options.command)}\n"
    )
    (exchange / "cpuinfo").write_text(processors(options.cpus))
    (exchange / "console").touch()


def processors(number):
    """/proc/cpuinfo for the guest: perftest needs a clock rate, which its kernel does not give."""
    first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    if "cpu MHz" not in first:
        first += "\ncpu MHz\t\t: 1000.000"
    lines = [line for line in first.splitlines() if not line.startswith("processor")]
    return "".join(f"processor\t: {n}\n" + "\n".join(lines) + "\n\n" for n in range(number))


def make_disk(path):
    with path.open("wb") as disk:
        disk.truncate(UPPER_BYTES)
    # An ordinary user's PATH may lack it.
    tool = shutil.which("mkfs.ext4", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not tool:
        raise Impossible("mkfs.ext4 is missing; install e2fsprogs")
    made = subprocess.run(
        [tool, *MKFS.split(), path],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise Broken(f"{tool} failed: {made.stderr.strip()}")


def command_line(options, kernel, exchange):
    shutil.copyfile(TOOLS / "init", exchange / "init")
    (exchange / "init").chmod(0o755)
    words = f"mem={options.memory >> 20}M ncpus={options.cpus} seccomp=on root=none"
    words += f" rootfstype=hostfs rootflags=/ rw init={exchange}/init ubd0={exchange}/disk"
    words += f" uml_dir={exchange}/uml faro_exchange={exchange} con=null con0=null,fd:1 ssl=null"
    return [kernel, *words.split()]


def memory_directory(needed):
    """Where the guest's memory is a file: in memory if there is room, as in few containers."""
    try:
        room = os.statvfs("/dev/shm")
        if room.f_bavail * room.f_frsize >= needed:
            return "/dev/shm"
    except OSError:
        pass
    return tempfile.gettempdir()


class Guest:
    """A running kernel. Its two streams are copied to ours as they come, up to the mark."""

    def __init__(self, command, exchange, mark):
        self.mark = mark
        self.pumps = []
        # The guest's processes are the kernel's children, and this process's once that is gone.
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        pipes = [os.pipe(), os.pipe()]
        lines = [f"ssl{n}=null,fd:{write}" for n, (_, write) in enumerate(pipes)]
        memory = int(command[1][4:-1]) << 20
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "TMPDIR": memory_directory(memory),
        }
        with (exchange / "console").open("ab") as console:
            self.process = subprocess.Popen(
                command + lines,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=environment,
                pass_fds=[write for _, write in pipes],
                start_new_session=True,
                preexec_fn=die_with_us,  # noqa: PLW1509  (no thread has been started yet)
            )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.interrupted)
        for (read, write), out in zip(pipes, (1, 2)):
            os.close(write)
            pump = threading.Thread(target=self.pump, args=(read, out), daemon=True)
            pump.start()
            self.pumps.append(pump)

    def follow(self, seconds):
        """Whether the guest ended, or said that it has, in time. It is gone afterwards."""
        ended = threading.Event()
        merged = os.path.sameopenfile(1, 2)

        def wait():
            for pump in self.pumps[:1] if merged else self.pumps:
                pump.join()
            ended.set()

        threading.Thread(target=wait, daemon=True).start()
        in_time = ended.wait(seconds)
        self.stop()
        return in_time

    def pump(self, read, out):
        held = b""
        while True:
            chunk = os.read(read, 1 << 16)
            held += chunk
            place = held.find(self.mark)
            if place >= 0:
                write_all(out, held[:place])
                return
            # What may be the beginning of the mark waits for the rest.
            most = min(len(held), len(self.mark) - 1) if chunk else 0
            ends = (n for n in range(most, 0, -1) if self.mark.startswith(held[-n:]))
            keep = next(ends, 0)
            write_all(out, held[: len(held) - keep])
            held = held[len(held) - keep :]
            if not chunk:
                return

    def stop(self):
        """Ends all processes of the guest and waits for them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break

    def interrupted(self, number, _frame):
        self.stop()
        # The main thread's `finally` removes the exchange.
        raise SystemExit(128 + number)


def write_all(out, data):
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(out, view) :]
    except BrokenPipeError:
        # The reader of our output has ended; the command's status still counts.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out)


def die_with_us():
    # The guest ends with the runner, even if that is killed.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)
