"""Submits a program to the cluster as a user does, and collects what its pods left behind."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import images
from harness import launch
from node import API

NAMESPACE = "faro"
TIME_LIMIT = 300  # seconds
SCRATCH = "/scratch"
ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "docs" / "deployment" / "kubernetes"
TEMPLATE = MANIFESTS / "restricted-template.yaml"

ALWAYS = {
    "spark.kubernetes.namespace": NAMESPACE,
    "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
    "spark.kubernetes.container.image.pullPolicy": "Never",
    # Pods that failed stay until the test has seen why.
    "spark.kubernetes.executor.deleteOnTermination": "false",
    "spark.kubernetes.driver.request.cores": "100m",
    "spark.kubernetes.executor.request.cores": "100m",
    "spark.kubernetes.report.interval": "500ms",
    "spark.kubernetes.allocation.batch.delay": "200ms",
    "spark.kubernetes.executor.apiPollingInterval": "2s",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "12",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "90s",
    "spark.executor.instances": "2",
    "spark.executor.memory": "1g",
    "spark.driver.memory": "700m",
    "spark.faro.fallback": "never",
}


def both(kind, rest):
    """A setting of the driver's and of the executors' pods."""
    return {f"spark.kubernetes.{role}.{kind}": rest for role in ("driver", "executor")}


@dataclass
class Run(launch.Outcome):
    submit_log: str = ""
    phase: str = "none"
    # By container: why it ended, where that was not by itself.
    ends: dict = field(default_factory=dict)


class Submitted:
    """An application that runs; `wait` has what it left.

    `template`: of both kinds of pods; None: of none; `scratch`: a directory of the node that all
    pods see as /scratch."""

    def __init__(self, cluster, logs, home, version, name, conf, program, log_dir, **options):
        self.cluster, self.logs, self.log_dir, self.name = cluster, logs, log_dir, name
        log_dir.mkdir(parents=True, exist_ok=True)
        self.log = log_dir / "submit.log"
        self.driver = f"{name}-driver"
        scratch = options["scratch"]
        conf = {
            **ALWAYS,
            **both("container.image", images.spark_image(version)),
            **both("volumes.hostPath.scratch.mount.path", SCRATCH),
            **both("volumes.hostPath.scratch.options.path", str(scratch)),
            "spark.kubernetes.driver.pod.name": self.driver,
            "spark.kubernetes.executor.podNamePrefix": name,
            "spark.executorEnv.JAVA_TOOL_OPTIONS": launch.SHORT_LIVED,
            "spark.kubernetes.driverEnv.JAVA_TOOL_OPTIONS": launch.SHORT_LIVED,
            **({"spark.shuffle.manager": launch.MANAGER} if options.get("faro", True) else {}),
            **self.templates(options.get("template", TEMPLATE)),
            **conf,
        }
        main_class, *arguments = program
        if not options.get("faro", True):
            conf = launch.without_faro(conf)
        program = [main_class, f"local://{images.JOBS}", SCRATCH, *arguments]
        words = ["--deploy-mode", "cluster"]
        command = launch.spark_submit(home, f"k8s://{API}", name, conf, program, *words)
        environment = {
            **cluster.first.environment(),
            "SPARK_HOME": str(home),
            "JAVA_TOOL_OPTIONS": launch.SHORT_LIVED,
        }
        self.started = time.monotonic()
        with self.log.open("wb") as out:
            out.write((" ".join(command) + "\n").encode())
            out.flush()
            self.leader = cluster.machine.start_process(
                command, stdout=out, stderr=subprocess.STDOUT, env=environment
            )

    def templates(self, template):
        if not template:
            return {}
        return {**both("podTemplateFile", template), **both("podTemplateContainerName", "spark")}

    def pods(self, role):
        found = self.cluster.get("pods", "-n", NAMESPACE, "-l", f"spark-role={role}")["items"]
        prefix = self.driver if role == "driver" else f"{self.name}-exec-"
        return [pod for pod in found if pod["metadata"]["name"].startswith(prefix)]

    def running_executors(self):
        """Names of the pods, oldest first."""
        pods = [pod for pod in self.pods("executor") if pod["status"].get("phase") == "Running"]
        pods.sort(key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))
        return [
            pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
        ]

    def ended(self):
        return self.leader.poll() is not None

    def driver_text(self):
        return self.logs.of(NAMESPACE).get(self.driver, "")

    def await_line(self, pattern, seconds=180):
        """Waits until the driver has written a line like that."""
        self.cluster.await_(
            f"a line like {pattern}",
            lambda: re.search(pattern, self.driver_text()) or self.ended(),
            seconds,
        )

    def wait(self):
        late = ""
        try:
            code = self.leader.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired:
            code, late = -1, f"still ran after {TIME_LIMIT} s"
            self.leader.kill()
        seconds = time.monotonic() - self.started
        drivers = self.pods("driver")
        phase = drivers[0]["status"]["phase"] if drivers else "none"
        if not late and drivers:
            self.await_executors()
        ends = {
            name: why
            for pod in [*drivers, *self.pods("executor")]
            for name, why in ends_of(pod).items()
        }
        logs = self.keep_logs()
        driver = logs.pop(self.driver, "")
        submit = self.log.read_text(errors="replace").partition("\n")[2]
        told = {"submit_log": submit, "phase": phase, "ends": ends}
        return Run(code, late, seconds, driver, executor_logs=logs, **told)

    def keep_logs(self):
        """What its pods wrote, by pod; all of it as files, with what the cluster says of pods."""
        logs = {
            pod: text
            for pod, text in self.logs.of(NAMESPACE).items()
            if pod.startswith((self.driver, f"{self.name}-exec-"))
        }
        for name, text in logs.items():
            (self.log_dir / f"{name}.log").write_text(text)
        said = self.cluster.kubectl("describe", "pods,pvc,pv", "-n", NAMESPACE)
        (self.log_dir / "pods.txt").write_text(said)
        return logs

    def await_executors(self):
        """They write their last lines when the driver has ended already."""

        def all_ended():
            return all(p["status"].get("phase") != "Running" for p in self.pods("executor"))

        self.cluster.await_("the executors should end", all_ended, 60)

    def remove(self):
        """Idempotent."""
        if not self.ended():
            self.leader.kill()
        self.keep_logs()
        self.cluster.kubectl(
            *("delete", "pod,service,configmap,pvc", "-n", NAMESPACE, "-l", "spark-role"),
            *("--grace-period=0", "--force", "--ignore-not-found"),
        )


def ends_of(pod):
    """By container: reason and exit code, where they are not those of a good end."""
    found = {}
    for status in pod["status"].get("containerStatuses", []):
        state = status.get("state", {}).get("terminated") or status.get("state", {}).get("waiting")
        if state and (state.get("reason"), state.get("exitCode")) != ("Completed", 0):
            name = f"{pod['metadata']['name']}/{status['name']}"
            found[name] = f"{state.get('reason')} {state.get('exitCode', state.get('message'))}"
    return found
