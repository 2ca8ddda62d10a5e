"""Runs an executor's java in a pod: `enter.py SPEC ARGUMENT_OF_JAVA...`, as root.

SPEC is the JSON of `Pod`s by executor id (pod.py). What a container runtime does is done here with
the same calls: namespaces, mounts, limits, no capabilities, another user, a seccomp filter.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import seccomp

NEW_MOUNTS, NEW_UTS, NEW_IPC, NEW_PIDS, NEW_NET = (
    *(0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000),
)
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_CAPBSET_DROP = 1, 24
MOST_CAPABILITIES = 64
DEVICES = ("null", "zero", "full", "random", "urandom")

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(libc, name)(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}{arguments}: {os.strerror(code)}")


def mount(source, target, kind=None, flags=0, data=None):
    words = [str(word).encode() if word is not None else None for word in (source, target, kind)]
    call("mount", *words, ctypes.c_ulong(flags), data.encode() if data else None)


def bind(source, target, flags=0):
    mount(source, target, None, BIND)
    if flags:
        mount(None, target, None, REMOUNT | BIND | flags)


def main():
    pods = json.loads(Path(sys.argv[1]).read_text())
    words = sys.argv[2:]
    executor = words[words.index("--executor-id") + 1]
    if executor not in pods:
        sys.exit(f"pod: executor {executor} has no pod; one before it has ended: look at its log")
    pod = pods[executor]
    with Path("/run/netns", pod["network"]).open() as network:
        call("setns", network.fileno(), NEW_NET)
    call("unshare", NEW_MOUNTS | NEW_UTS | NEW_IPC | NEW_PIDS)
    child = os.fork()
    if child == 0:
        try:
            become(pod, words)
        except BaseException as error:  # Spark shows what is written here.
            print(f"pod: {error!r}", file=sys.stderr, flush=True)
            os._exit(70)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: os.kill(child, received))
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)


def become(pod, words):
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    name = f"pod-{pod['address'].replace('.', '-')}"
    call("sethostname", name.encode(), len(name))
    file_system(pod)
    environment = {
        **os.environ,
        "SPARK_EXECUTOR_DIRS": pod["local"],
        "SPARK_LOCAL_IP": pod["address"],
        "HOME": "/nonexistent",
        **pod["environment"],
    }
    words = [*words]
    words[words.index("--hostname") + 1] = pod["host"] or pod["address"]
    words += ["--bind-address", pod["bind"] or pod["address"]]
    for old, new in pod["replace"].items():
        words = [word.replace(old, new) for word in words]
    java = [pod["java"], *pod["options"], *words]
    if pod["files"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (pod["files"], pod["files"]))
    if pod["locked"] is not None:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (pod["locked"], pod["locked"]))
    for capability in range(MOST_CAPABILITIES):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if pod["user"]:
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(pod["user"], pod["user"], pod["user"])
        # The change of the user has cleared it.
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if pod["seccomp"]:
        seccomp.apply(libc)
    os.execve(java[0], java, environment)


def file_system(pod):
    """Mounts of this namespace only: nothing of it is seen outside."""
    mount(None, "/", None, RECURSIVE | PRIVATE)
    mount("proc", "/proc", "proc", NO_SUID | NO_DEVICES | NO_EXEC)
    for path, text in pod["texts"].items():
        kept = Path(pod["place"], "texts", f"{pod['address']}-{Path(path).name}")
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(text)
        kept.chmod(0o644)
        bind(kept, path)
    devices(pod)
    local = Path(pod["local"])
    local.mkdir(parents=True, exist_ok=True)
    if pod["user"]:
        shutil.chown(local, pod["user"], 0)
    bind(local, local, NO_EXEC if pod["local_noexec"] else 0)
    if pod["place"].startswith("/tmp/"):
        raise ValueError(f"{pod['place']} would be hidden by the pod's own /tmp")
    mount("tmpfs", "/tmp", "tmpfs", NO_SUID | NO_DEVICES | NO_EXEC, "size=64m,mode=1777")
    if not pod["sys"]:
        mount("tmpfs", "/sys", "tmpfs", READ_ONLY)
    if pod["read_only"]:
        mount(None, "/", None, REMOUNT | BIND | READ_ONLY)
    for command in pod["commands"]:
        subprocess.run(command, check=True, shell=True)


def devices(pod):
    """A container's /dev: a few devices; /dev/shm only where the pod has one."""
    kept = Path(pod["place"], "devices", pod["address"])
    kept.mkdir(parents=True, exist_ok=True)
    mount("tmpfs", kept, "tmpfs", NO_SUID, "mode=755")
    for name in DEVICES:
        (kept / name).touch()
        bind(f"/dev/{name}", kept / name)
    (kept / "fd").symlink_to("/proc/self/fd")
    if pod["shm"]:
        (kept / "shm").mkdir()
        mount("shm", kept / "shm", "tmpfs", NO_SUID | NO_DEVICES | NO_EXEC, f"size={pod['shm']}")
        (kept / "shm").chmod(0o1777)
    mount(kept, "/dev", None, BIND | RECURSIVE)


if __name__ == "__main__":
    main()
