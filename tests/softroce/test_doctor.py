"""`faro doctor` on hosts with an RDMA device each; runs in a guest of two hosts."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

DEVICES = "/dev/infiniband"
HERE = Path(__file__).resolve().parent
# A guest may have a small share of a processor; by default an exchange of blocks may take 5 s.
PATIENT = ["--timeout", "60"]
# As an executor's user: without the capability to lock memory, and to open what is root's.
UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.fixture
def faro(pytestconfig):
    """The path of the program."""
    return pytestconfig.option.faro


@pytest.fixture
def doctor(faro):
    """A function that runs `faro doctor` on a host and returns its result."""

    def run(*options, host="h1", under=(), environment=None):
        ran = subprocess.run(
            ["at", host, *under, faro, "doctor", "--json", *PATIENT, *options],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, **(environment or {})},
        )
        result = json.loads(ran.stdout)
        assert result["exit_code"] == ran.returncode, (ran.returncode, result)
        return result

    return run


def not_ok(result):
    return [row for row in result["checks"] if row["level"] != "ok"]


def check(result, name, level, words="", fix=""):
    found = [row for row in result["checks"] if row["check"] == name]
    assert found, f"no {name} in {result}"
    assert found[-1]["level"] == level, found
    assert words in found[-1]["message"], (words, found)
    assert fix in (found[-1]["fix"] or ""), (fix, found)


@pytest.fixture
def nic(pytestconfig):
    """A function that returns the environment in which devices answer as others do, see nic.c."""

    def environment(answers):
        return {"LD_PRELOAD": pytestconfig.option.nic, "NIC": answers}

    return environment


def at(*command):
    subprocess.run(["at", "h1", *command], check=True)


@pytest.fixture
def second_device():
    """A second device of h1, at an interface whose name comes after the first one's."""
    at("ip", "link", "add", "dummy9", "type", "dummy")
    try:
        at("ip", "link", "set", "dev", "dummy9", "up", "mtu", "4300")
        at("ip", "address", "add", "10.88.0.1/24", "dev", "dummy9")
        at("rdma", "link", "add", "rxe9", "type", "rxe", "netdev", "dummy9")
        subprocess.run(["link", "h1", "rdma-view"], check=True)
        yield "rxe9"
    finally:
        subprocess.run(["at", "h1", "rdma", "link", "delete", "rxe9"], check=False)
        subprocess.run(["at", "h1", "ip", "link", "delete", "dummy9"], check=False)
        subprocess.run(["link", "h1", "rdma-view"], check=True)


def test_each_host_chooses_its_own_device(doctor):
    """Each host finds its own device, and the GID of its own address."""
    for number in (1, 2):
        result = doctor(host=f"h{number}")
        assert result["exit_code"] == 0, not_ok(result)
        check(result, "choice", "ok", f"rxe{number}:1, GID 1 10.77.0.{number}, because it has")
        check(result, "library", "ok", "libibverbs.so.1.")
        check(result, "MTU", "ok", "4096")
        check(result, "verbs", "ok", "blocks pass")


def test_blocks_pass_to_the_other_host(doctor, faro):
    """Blocks pass to the other host over both fabrics."""
    with subprocess.Popen(
        ["at", "h2", faro, "doctor", "--serve"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            lines = [server.stdout.readline().split() for _ in range(2)]
            assert lines == [["tcp", "10.77.0.2:7600"], ["verbs", "10.77.0.2:7601"]], lines
            result = doctor("--peer", "h2:7600")
            assert result["exit_code"] == 0, not_ok(result)
            check(result, "peer tcp", "ok", "10.77.0.2:7600")
            check(result, "peer verbs", "ok", "10.77.0.2:7601")
        finally:
            server.kill()


def test_a_peer_that_does_not_listen_is_broken(doctor):
    """As between hosts that do not reach each other."""
    result = doctor("--peer", "h2:7700")
    assert result["exit_code"] == 2, result
    check(result, "peer tcp", "broken", "10.77.0.2:7700", "faro doctor --serve")


def test_too_little_locked_memory(doctor):
    """64 KiB of locked memory for an arena of 128 MiB."""
    under = ["setpriv", "--bounding-set=-ipc_lock", "prlimit", "--memlock=65536:65536"]
    result = doctor(under=under)
    assert result["exit_code"] == 1, result
    check(
        result,
        "memlock",
        "slower",
        "may lock 65536 bytes of memory, the arena needs 134217728",
        "ulimit -l 131072",
    )
    result = doctor("--fabric", "verbs", under=under)
    assert result["exit_code"] == 2, result
    result = doctor("--fabric", "tcp", under=under)
    assert result["exit_code"] == 0, result


def test_a_device_without_permission(doctor):
    """A device that the user may not open."""
    files = sorted(Path(DEVICES).glob("uverbs*"))
    assert files, f"no {DEVICES}/uverbs*"
    modes = {file: file.stat().st_mode for file in files}
    try:
        for file in files:
            file.chmod(0o600)
        result = doctor(under=UNPRIVILEGED)
    finally:
        for file, mode in modes.items():
            file.chmod(mode)
    assert result["exit_code"] == 1, result
    check(result, "permission", "slower", f"no permission for {DEVICES}/uverbs", "chmod a+rw")


def test_a_host_without_libibverbs(doctor):
    """A host without libibverbs: an empty file is in its place."""
    empty = Path("/tmp/doctor-no-library")
    empty.mkdir(exist_ok=True)
    (empty / "libibverbs.so.1").write_bytes(b"")
    result = doctor(environment={"LD_LIBRARY_PATH": str(empty)})
    assert result["exit_code"] == 1, result
    check(result, "library", "slower", "install libibverbs1", "apt-get install libibverbs1")


def test_an_interface_that_is_down(doctor):
    """The interface behind the device is down."""
    subprocess.run(["link", "h1", "down"], check=True)
    try:
        deadline = time.monotonic() + 10
        while True:
            result = doctor("--address", "10.77.0.1")
            if result["exit_code"] or time.monotonic() > deadline:
                break
        check(result, "choice", "slower", "rxe1:1 is DOWN", "ip link set dev eth0 up")
    finally:
        subprocess.run(["link", "h1", "up"], check=True)


def test_the_device_whose_file_is_there(doctor, second_device):
    """As in a pod: sysfs shows two devices, /dev/infiniband has the file of the second."""
    at(
        "sh",
        "-c",
        "grep -lx rxe1 /sys/class/infiniband_verbs/uverbs*/ibdev | cut -d/ -f5 >/tmp/file",
    )
    first = f"{DEVICES}/{Path('/tmp/file').read_text().strip()}"
    at("rm", first)
    result = doctor()
    assert result["exit_code"] == 0, not_ok(result)
    check(result, "choice", "ok", f"{second_device}:1, GID 1 10.88.0.1, because ")
    check(result, "choice", "ok", f"passed over: rxe1:1 ({first} of RDMA device rxe1 is not there")
    check(result, "verbs", "ok", "blocks pass")
    result = doctor("--device", "rxe1")
    assert result["exit_code"] == 1, result
    check(result, "permission", "slower", first, "device plug-in")


def test_a_list_and_a_subnet(doctor, second_device):
    """`--device` takes devices in an order, and subnets."""
    for wanted in ["rxe9,rxe1", "nothing_0,rxe9", "10.88.0.0/16"]:
        result = doctor("--device", wanted)
        assert result["exit_code"] == 0, not_ok(result)
        check(result, "choice", "ok", f"{second_device}:1, GID 1 10.88.0.1")
        check(result, "verbs", "ok", "blocks pass")


def test_a_device_without_reliable_connections(doctor, nic, second_device):
    """As AWS's EFA, beside another device and alone."""
    result = doctor(environment=nic("norc=rxe1"))
    assert result["exit_code"] == 0, not_ok(result)
    words = "passed over: rxe1:1 (RDMA device rxe1 makes no reliable connected queue pair"
    check(result, "choice", "ok", words)
    check(result, "verbs", "ok", "blocks pass")
    assert f"RDMA on {second_device}:1" in result["message"]
    result = doctor("--device", "rxe1", environment=nic("norc=rxe1"))
    assert result["exit_code"] == 1, result
    check(result, "opening", "slower", "Operation not supported", "spark.faro.verbs.device")


def test_limits_of_a_device(doctor, nic):
    """A device that allows no reads, one that is out of queue pairs, and one that has few."""
    result = doctor(environment=nic("noreads=rxe1"))
    assert result["exit_code"] == 1, result
    check(result, "opening", "slower", "allows 0 reads in flight of a queue pair")
    result = doctor(environment=nic("nopairs=rxe1"))
    assert result["exit_code"] == 1, result
    check(result, "opening", "slower", "Cannot allocate memory", "ulimit -l unlimited")
    result = doctor(environment=nic("qps=124"))
    assert result["exit_code"] == 0, not_ok(result)
    check(result, "limits", "note", "124 queue pairs", "fewer and larger executors")


def test_an_mtu_that_shrinks_while_a_host_serves(doctor, faro):
    """New connections use the MTU that the link has when they are made."""
    with subprocess.Popen(
        ["at", "h1", faro, "doctor", "--serve"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            for _ in range(2):
                server.stdout.readline()
            at("ip", "link", "set", "dev", "eth0", "mtu", "1500")
            result = doctor("--peer", "h1:7600", host="h2")
            check(result, "peer verbs", "ok", "10.77.0.1:7601")
        finally:
            at("ip", "link", "set", "dev", "eth0", "mtu", "4300")
            server.kill()


def logged(faro, environment, *under):
    """The calls of the device; the exchange must work."""
    ran = subprocess.run(
        ["at", "h1", *under, faro, "doctor", *PATIENT],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert ran.returncode == 0, ran.stdout
    assert "RDMA on rxe1:1" in ran.stdout, ran.stdout
    return ran.stderr


def registrations(faro, environment):
    """The calls that register a slab, as the device is asked."""
    slab = re.compile(r"^nic: (reg_mr\w*) of 16777216 bytes, access (0x[0-9a-f]+)$", re.M)
    found = slab.findall(logged(faro, environment))
    return {(name, int(access, 16)) for name, access in found}


def test_memory_is_registered_with_relaxed_ordering_where_it_is_known(faro, nic):
    """With the library's newer call and without, and where the device refuses the right."""
    new, old = ("reg_mr_iova2", 0x100007), ("reg_mr", 0x7)
    assert registrations(faro, nic("log")) == {new}
    assert registrations(faro, nic("log,noiova2")) == {old}
    assert registrations(faro, nic("log,strict")) == {new, old}


def test_a_device_that_is_slow(doctor, nic):
    """Each command to its firmware takes 20 ms."""
    result = doctor(environment=nic("slow=20"))
    assert result["exit_code"] == 0, not_ok(result)
    check(result, "verbs", "ok", "blocks pass")


def test_an_infiniband_port(doctor, faro, nic):
    """Its queue pairs have a full member's P_Key, and a global header where the port needs it."""
    under = [HERE / "infiniband", "0x7fff,0x8001"]
    result = doctor(under=under, environment=nic("ib"))
    assert result["exit_code"] == 0, not_ok(result)
    check(result, "choice", "ok", "rxe1:1, GID 1 10.77.0.1, P_Key 0x8001, because it has")
    check(result, "verbs", "ok", "blocks pass")
    for header, answers in [(0, "ib,log,pkey=1"), (1, "ib,log,pkey=1,grh")]:
        calls = logged(faro, nic(answers), *under)
        assert set(re.findall(r"^nic: INIT: (.*)$", calls, re.M)) == {"P_Key 1"}
        to = set(re.findall(r"^nic: RTR: (.*)$", calls, re.M))
        assert to == {f"MTU 5, LID 1, global {header}, SL 0"}


def test_an_infiniband_port_of_a_limited_member(doctor, nic):
    result = doctor(under=[HERE / "infiniband", "0x7fff,0x0001"], environment=nic("ib"))
    assert result["exit_code"] == 1, result
    check(result, "choice", "slower", "full member of a partition", "partitions.conf")


def test_a_switch_with_a_smaller_mtu_than_both_hosts(doctor, faro, nic):
    """Packets of the hosts' MTU do not pass the bridge's port; the message names their size."""
    with subprocess.Popen(
        ["at", "h2", faro, "doctor", "--serve"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            for _ in range(2):
                server.stdout.readline()
            subprocess.run(["ip", "link", "set", "dev", "port2", "mtu", "1500"], check=True)
            result = doctor("--peer", "h2:7600", environment=nic("retries"))
            check(result, "MTU", "ok", "4096")
            check(result, "peer verbs", "slower", "packets of 4096 bytes and their headers?")
        finally:
            subprocess.run(["ip", "link", "set", "dev", "port2", "mtu", "4300"], check=True)
            server.kill()
