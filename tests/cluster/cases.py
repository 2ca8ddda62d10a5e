"""The tests of a cluster: over TCP on this machine, over verbs in a guest with an RDMA device."""

import re
import time

from cluster import Cluster, figures

# A guest is slow.
SMALL = ["--rows", "40000", "--rounds", "1"]


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def add(self, name, good, detail):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        print(f"  {'ok    ' if good else 'FAILED'} {name}: {detail}", flush=True)


def confined(engine, cluster, report):
    """No service has privileges or devices that it does not need."""
    for name in cluster.states():
        form = (
            "{{.HostConfig.Privileged}} {{.Config.User}} {{len .HostConfig.Devices}} "
            "{{.HostConfig.CapDrop}} {{.HostConfig.CapAdd}}"
        )
        words = engine.must("docker", "inspect", "-f", form, name).strip()
        devices = 1 if "rdma-worker" in name else 0
        report.add(
            f"confined {name}",
            words == f"false spark {devices} [ALL] []",
            f"privileged, user, devices, capabilities: {words}",
        )


def job(cluster, report, fabric, arguments, **variables):
    """All remote bytes came over one fabric, and they are as many as Spark itself counted."""
    started = time.monotonic()
    code, output = cluster.submit(
        f"job-{fabric}", *arguments, FARO_FABRIC=fabric, FARO_FALLBACK="never", **variables
    )
    got = figures(output)
    good = (
        code == 0
        and "DEMO OK" in output
        and got[fabric] == got["all"] > 0
        and got["fallbacks"] == 0
        and got["lost"] == 0
    )
    report.add(
        f"job over {fabric}",
        good,
        f"exit code {code}, {got.get(fabric)} of {got['all']} "
        f"remote bytes over {fabric}, {got['fallbacks']} fall-backs, "
        f"{time.monotonic() - started:.0f} s",
    )
    return got[fabric]


def killed(engine, cluster, report, arguments):
    """One worker's container is killed while blocks are being read; what it had written is
    made again, and the answers are right. The last case that needs two workers."""
    victim = cluster.workers()[-1]
    state = {"killed": False}

    def kill(line):
        if not state["killed"] and "blocks are being read" in line:
            state["killed"] = True
            engine.must("docker", "kill", victim)

    code, output = cluster.submit("killed", *arguments, on_line=kill)
    got = figures(output)
    good = (
        state["killed"]
        and code == 0
        and "DEMO OK" in output
        and got["lost"] >= 1
        and got["repeated"] >= 1
    )
    report.add(
        "worker killed",
        good,
        f"exit code {code}, killed {state['killed']}, "
        f"{got['lost']} executors lost, {got['repeated']} stages run again, "
        f"{len(re.findall(r': right,', output))} steps right",
    )


def refused(cluster, report):
    code, output = cluster.submit("refused", "--rows", "7")
    report.add("bad argument", code == 2 and "--rows 7: 1000 to" in output, f"exit code {code}")


def history(engine, cluster, report):
    """The history server lists the jobs that ran."""
    master = next(name for name in cluster.states() if "history" in name)
    script = (
        "read -r a _ < <(hostname -i); exec 3<>/dev/tcp/$a/18080; "
        'printf "GET /api/v1/applications HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3'
    )
    end = time.monotonic() + 60
    while True:
        said = engine.call("docker", "exec", master, "timeout", "10", "bash", "-c", script).stdout
        if "faro-cluster-demo" in said or time.monotonic() > end:
            break
        time.sleep(0.5)
    report.add(
        "history",
        "faro-cluster-demo" in said,
        f"{said.count('faro-cluster-demo')} applications of the demo",
    )


def tcp(engine, report, logs):
    cluster = Cluster(engine, "tcp", logs)
    try:
        states = cluster.up()
        report.add(
            "up",
            len(cluster.workers()) == 2,
            f"{len(states)} services healthy: {' '.join(sorted(states))}",
        )
        confined(engine, cluster, report)
        job(cluster, report, "tcp", ["--rows", "400000", "--rounds", "1"])
        refused(cluster, report)
        killed(engine, cluster, report, ["--rows", "1000000", "--rounds", "2"])
        history(engine, cluster, report)
    except RuntimeError as error:
        report.add("cluster", False, error)
    finally:
        cluster.keep_logs("tcp")
        cluster.down()


def softroce(engine, report, logs, device):
    """The bytes that came over verbs."""
    read = 0
    cluster = Cluster(engine, "softroce", logs, {"FARO_RDMA_DEVICE": device})
    try:
        states = cluster.up()
        report.add(
            "up",
            len(cluster.workers()) == 2,
            f"{len(states)} services healthy: {' '.join(sorted(states))}",
        )
        confined(engine, cluster, report)
        read = job(cluster, report, "verbs", [*SMALL, "--partitions", "4"])
        killed(engine, cluster, report, [*SMALL, "--partitions", "12"])
    except RuntimeError as error:
        report.add("cluster", False, error)
    finally:
        cluster.keep_logs("softroce")
        cluster.down()
    return read
