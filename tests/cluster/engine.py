"""A Docker Engine of the test's own, and compose on it.

The engine keeps everything in one directory, touches neither the firewall nor the host's bridge,
and is ended with its containers. The host's own engine, if there is one, is never used.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT = 60  # seconds
# Debian keeps daemons where an ordinary user's PATH may not look; its client is of the same
# version.
PATH = f"/usr/bin:/usr/sbin:/sbin:{os.environ.get('PATH', '')}"


class Impossible(Exception):
    """No engine can run here; the reason."""


def missing_packages():
    tools = {"dockerd": "docker.io", "mmdebstrap": "mmdebstrap", "docker": "docker-cli"}
    missing = [package for tool, package in tools.items() if not shutil.which(tool, path=PATH)]
    # Debian 12 has the client in docker.io, later ones in a package of its own.
    apart = shutil.which("apt-cache") and succeeds("apt-cache", "show", "docker-cli")
    if {"docker.io", "docker-cli"} <= {*missing} and not apart:
        missing.remove("docker-cli")
    if not compose_command():
        missing.append("docker-compose")
    return missing


def set_up():
    """Installs the engine and compose as root; else says the exact command."""
    missing = missing_packages()
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    if os.geteuid() != 0:
        first = f"sudo {' '.join(install)}; " if missing else ""
        raise Impossible(f"an engine of the test's own needs root: {first}sudo make test-cluster")
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise Impossible(f"missing, and this is no Debian: {' '.join(missing)}")
    print(f"  installing: {' '.join(missing)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if done.returncode:
        raise Impossible(f"{' '.join(install)}: {' '.join(done.stdout.strip().splitlines()[-1:])}")


def compose_command():
    """Compose 2 is a plug-in of the client, compose 1 (Debian 12) a program."""
    if shutil.which("docker", path=PATH) and succeeds("docker", "compose", "version"):
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose", path=PATH) else None


def succeeds(*command):
    environment = {**os.environ, "PATH": PATH}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    return done.returncode == 0


class Engine:
    """To be used with `with`. `place` is a directory for its data on a real file system."""

    def __init__(self, place, log):
        self.place = Path(place)
        self.log = Path(log)
        self.socket = f"unix://{self.place}/docker.sock"
        self.environment = {**os.environ, "PATH": PATH, "DOCKER_HOST": self.socket}
        self.process = None

    def __enter__(self):
        self.place.mkdir(parents=True, exist_ok=True)
        words = (
            "--bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false"
        )
        command = ["dockerd", "-H", self.socket, "--data-root", self.place / "data"]
        command += ["--exec-root", self.place / "exec", "--pidfile", self.place / "pid"]
        command += words.split()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(c) for c in command],
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )
        end = time.monotonic() + START_LIMIT
        while self.call("docker", "version").returncode:
            if self.process.poll() is not None or time.monotonic() > end:
                words = self.log.read_text(errors="replace").strip().splitlines()[-1:]
                self.__exit__()
                raise Impossible(f"dockerd does not start: {' '.join(words)}; see {self.log}")
            time.sleep(0.2)
        return self

    def __exit__(self, *_):
        """Ends the containers, the engine and its containerd, and removes what they kept."""
        names = self.call("docker", "ps", "-aq").stdout.split()
        if names:
            self.call("docker", "rm", "-fv", *names)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        remove(self.place)

    def call(self, *command, **more):
        """A finished process, with its output; the caller looks at the exit code."""
        return subprocess.run(
            [str(c) for c in command],
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def must(self, *command, **more):
        done = self.call(*command, **more)
        if done.returncode:
            words = (done.stdout + done.stderr).strip()[-2000:]
            raise RuntimeError(
                f"{' '.join(map(str, command))}: exit code {done.returncode}\n{words}"
            )
        return done.stdout


def remove(place):
    """An engine that was killed leaves mounts behind, whose contents are not its own."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((m for m in mounts if m.startswith(f"{place}/")), reverse=True):
        subprocess.run(["umount", mount], check=False)
    shutil.rmtree(place, ignore_errors=True)
    if place.exists():
        print(f"cluster: could not remove all of {place}", file=sys.stderr)
