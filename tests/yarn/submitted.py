"""Submits a program of tests/spark/jobs to YARN, and collects what it left behind."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass

import guard
from daemons import MASTER
from harness import launch

EXECUTOR_MIB = 1024
DRIVER_MIB = 512
# Of the causes of a failure.
STATE_SHOWN = 4000
LINES_SHOWN = 40
LINE_SHOWN = 400

ALWAYS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "12",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "90s",
    "spark.executor.instances": "2",
    "spark.executor.memory": f"{EXECUTOR_MIB}m",
    "spark.driver.memory": f"{DRIVER_MIB}m",
    "spark.yarn.am.memory": f"{DRIVER_MIB}m",
    "spark.yarn.maxAppAttempts": "1",
    "spark.yarn.report.interval": "200ms",
    "spark.yarn.scheduler.heartbeat.interval-ms": "500",
    "spark.yarn.submit.waitAppCompletion": "true",
    # Of the process; an executor's block manager has the address of its node.
    "spark.executorEnv.SPARK_LOCAL_IP": MASTER,
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": MASTER,
    "spark.executorEnv.JAVA_TOOL_OPTIONS": launch.SHORT_LIVED,
    "spark.yarn.appMasterEnv.JAVA_TOOL_OPTIONS": launch.SHORT_LIVED,
}


@dataclass
class Run(launch.Outcome):
    """`driver_log`: wherever the driver ran."""

    # Of spark-submit.
    submit_log: str = ""
    application: str = ""
    # What the ResourceManager says of its end.
    state: str = ""
    # Of the container with the application master; empty where it was not started.
    master_log: str = ""

    def causes(self):
        """Why it may have failed: what YARN says, and how its processes' logs end."""
        logs = {"application master": self.master_log, "spark-submit": self.submit_log}
        lines = [f"{self.application or 'no application'}: {self.state[:STATE_SHOWN]}"]
        for name, log in logs.items():
            lines.append(f"-- {name}, the end of its log{'' if log.strip() else ': empty'}")
            told = [line[:LINE_SHOWN] for line in log.splitlines() if not line.startswith("\tat ")]
            lines += told[-LINES_SHOWN:]
        return "\n".join(lines)


class Submitted:
    """An application that runs; `wait` has what it left."""

    def __init__(self, cluster, version, home, name, mode, conf, faro_jar, program, log_dir, jars):
        self.cluster = cluster
        self.mode = mode
        self.log_dir = log_dir
        log_dir.mkdir(parents=True, exist_ok=True)
        self.log = log_dir / "submit.log"
        conf = {
            **ALWAYS,
            "spark.shuffle.service.port": str(cluster.service_port),
            "spark.yarn.stagingDir": f"file://{cluster.place}/staging",
            **({"spark.yarn.jars": f"local:{home}/jars/*"} if jars == "local" else {}),
            **({"spark.driver.host": MASTER} if mode == "client" else {}),
            **conf,
        }
        jars, first = [], []
        if faro_jar:
            jars, conf = [faro_jar], {"spark.shuffle.manager": launch.MANAGER, **conf}
            if version.spark.startswith("3."):
                # As docs/user/deployment.md says: a container has the jar in its working directory.
                first = [faro_jar if mode == "client" else faro_jar.name]
                conf["spark.executor.extraClassPath"] = faro_jar.name
        else:
            conf = launch.without_faro(conf)
        words = ["--deploy-mode", mode]
        command = launch.spark_submit(
            home, "yarn", name, conf, program, *words, jars=jars, jars_first=first
        )
        environment = launch.environment_for(home, short_lived=True)
        environment["HADOOP_CONF_DIR"] = str(cluster.conf)
        self.started = time.monotonic()
        with self.log.open("wb") as out:
            out.write((" ".join(command) + "\n").encode())
            out.flush()
            self.leader = launch.start_group(
                command, stdin=subprocess.DEVNULL, stdout=out, env=environment, cwd=log_dir
            )

    def text(self):
        return self.log.read_text(errors="replace")

    def application(self):
        found = re.search(r"application_\d+_\d+", self.text().partition("\n")[2])
        return found[0] if found else ""

    def await_line(self, pattern, seconds=120):
        """Waits until a container or spark-submit has written a line like that."""

        def written():
            logs = [self.text().partition("\n")[2]]
            if self.application():
                logs += self.cluster.container_logs(self.application()).values()
            return any(re.search(pattern, log) for log in logs)

        self.cluster.wait(f"a line like {pattern}", lambda: written() or self.ended(), seconds)

    def ended(self):
        return self.leader.poll() is not None

    def end(self):
        """Idempotent."""
        launch.stop_group(self.leader, 0)

    def wait(self):
        try:
            late = guard.wait(self.leader, self.log, silence=guard.CEILING)
            code = -1 if late else self.leader.returncode
        finally:
            self.end()
        application = self.application()
        self.await_containers()
        logs = self.cluster.container_logs(application) if application else {}
        for name, text in logs.items():
            (self.log_dir / f"{name}.log").write_text(text)
        # The first container has the application master.
        masters = {name for name in logs if name.endswith("_000001")}
        submit = self.text().partition("\n")[2]
        master = "\n".join(logs[name] for name in masters)
        driver = submit if self.mode == "client" else master
        state = self.cluster.state_of(application) if application else "not submitted"
        executors = {name: text for name, text in logs.items() if name not in masters}
        seconds = time.monotonic() - self.started
        told = {"submit_log": submit, "application": application, "state": state}
        told.update(master_log=master, executor_logs=executors)
        return Run(code, late, seconds, driver, **told)

    def await_containers(self):
        """Executors write their last lines when the driver has ended already."""
        nodes = [node for node in self.cluster.nodes if node.leader.poll() is None]
        self.cluster.wait("containers should end", lambda: not any(n.containers() for n in nodes))
