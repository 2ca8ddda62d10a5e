"""YARN on loopback: a ResourceManager and NodeManagers, each a JVM of its own, with Spark's shuffle
service in each NodeManager. A node has an address of its own: 127.0.0.2, 127.0.0.3."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import hadoop_home
import spark_home
from harness import launch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MASTER = "127.0.0.1"
NODES = ("127.0.0.2", "127.0.0.3")
# Of a container, the socket of its node's `faro serve`: a container's directory is
# usercache/USER/appcache/APPLICATION/CONTAINER in the NodeManager's.
NODE_SERVICE = "/proc/self/cwd/../../../../../service"
# Of a node: one executor of 1,024 MiB and its overhead, and a small application master.
NODE_MIB = 2304
READY_WITHIN = 60  # seconds
DISKS = "yarn.nodemanager.disk-health-checker"
# What the shuffle service needs of a Spark's jars.
SERVICE_NEEDS = (
    *("spark-network-common_", "spark-network-shuffle_", "spark-common-utils", "spark-tags_"),
    *("netty-", "jackson-annotations-", "jackson-core-2", "jackson-databind-", "commons-lang3-"),
    *("commons-crypto-", "guava-", "failureaccess-", "leveldbjni-", "rocksdbjni-"),
    *("metrics-core-", "scala-library-", "log4j-api-", "log4j-core-", "spark-config_"),
    *("RoaringBitmap-", "shims-"),
)
# What Hadoop does by reflection.
OPENS = [
    word
    for name in ("lang", "io", "net", "nio", "util", "util.concurrent")
    for word in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")
]


class NotReady(Exception):
    """A daemon did not come up."""


def preloaded():
    """The library of own-address.c."""
    library = ROOT / "target" / "tests-yarn" / "own-address.so"
    source = HERE / "own-address.c"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        part = library.with_suffix(".part")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", part, source, "-ldl"], check=True)
        part.rename(library)
    return library


def write_xml(path, values):
    rows = (
        f"<property><name>{escape(name)}</name><value>{escape(str(value))}</value></property>\n"
        for name, value in values.items()
    )
    path.write_text(f"<configuration>\n{''.join(rows)}</configuration>\n")


class Node:
    """One NodeManager."""

    def __init__(self, cluster, address):
        self.cluster = cluster
        self.address = address
        self.place = cluster.place / address
        self.leader = None

    def start(self):
        for name in ("conf", "local", "logs", "recovery"):
            (self.place / name).mkdir(parents=True, exist_ok=True)
        values = {
            **self.cluster.values,
            "yarn.nodemanager.hostname": self.address,
            "yarn.nodemanager.bind-host": self.address,
            "yarn.nodemanager.address": f"{self.address}:0",
            "yarn.nodemanager.localizer.address": f"{self.address}:0",
            "yarn.nodemanager.webapp.address": f"{self.address}:0",
            "yarn.nodemanager.local-dirs": self.place / "local",
            "yarn.nodemanager.log-dirs": self.place / "logs",
            "yarn.nodemanager.resource.memory-mb": NODE_MIB,
            "yarn.nodemanager.resource.cpu-vcores": 16,
            f"{DISKS}.enable": "false",
            # A NodeManager looks at its disks once even so, and gives no directory to containers
            # where less than a tenth of the whole disk may be written, as on many machines.
            f"{DISKS}.max-disk-utilization-per-disk-percentage": "100.0",
            "yarn.nodemanager.resource-monitor.interval-ms": 500,
            "yarn.nodemanager.sleep-delay-before-sigkill.ms": 2000,
            "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR",
            # Virtual memory says nothing: the JVM alone reserves more than the default allows.
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "true",
            "yarn.nodemanager.aux-services": "spark_shuffle",
            "yarn.nodemanager.aux-services.spark_shuffle.class": (
                "org.apache.spark.network.yarn.YarnShuffleService"
            ),
            "yarn.nodemanager.aux-services.spark_shuffle.classpath": self.cluster.service_path(),
            "spark.shuffle.service.port": self.cluster.service_port,
            "spark.shuffle.push.server.mergedShuffleFileManagerImpl": (
                "org.apache.spark.network.shuffle.RemoteBlockPushResolver"
            ),
            "spark.shuffle.push.server.minChunkSizeInMergedShuffleFile": "16k",
        }
        write_xml(self.place / "conf" / "yarn-site.xml", values)
        self.leader = self.cluster.daemon(
            "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
            self.place / "conf",
            f"node-{self.address}",
            LD_PRELOAD=str(preloaded()),
            FARO_TEST_ADDRESS=self.address,
        )

    def containers(self):
        """Process ids of the containers that run, by container id; each leads a session."""
        found = {}
        for file in (self.place / "local" / "nmPrivate").glob("*/*/container_*.pid"):
            with contextlib.suppress(OSError, ValueError):
                pid = int(file.read_text())
                if Path(f"/proc/{pid}").exists():
                    found[file.stem] = pid
        return found

    def resident_kib(self):
        """By container: what NodeManagers sum up, and how much of it is shared memory."""
        found = {}
        for container, pid in self.containers().items():
            sums = Counter()
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                for one in (pid, *children):
                    status = Path(f"/proc/{one}/status").read_text()
                    for name, value in re.findall(r"^(VmRSS|RssShmem):\s+(\d+) kB", status, re.M):
                        sums[name] += int(value)
            found[container] = sums["VmRSS"], sums["RssShmem"]
        return found

    def kill(self):
        """As if the machine lost its power."""
        pids = self.containers().values()
        self.cluster.leaders.remove(self.leader)
        launch.stop_group(self.leader, 0)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def stop(self):
        if self.leader and self.leader.poll() is None:
            self.kill()


class Cluster:
    """`service`: the name of the Spark whose shuffle service the nodes have."""

    def __init__(self, place, logs, service="3.5.9", nodes=NODES):
        self.place = Path(place)
        self.logs = Path(logs)
        self.service = service
        self.home = hadoop_home.ensure()
        self.service_port = launch.free_port()
        self.web = launch.free_port()
        self.conf = self.place / "conf"
        self.excluded = self.place / "excluded-nodes"
        ports = {
            name: f"{MASTER}:{launch.free_port()}"
            for name in ("", "scheduler.", "resource-tracker.", "admin.")
        }
        self.values = {
            "yarn.resourcemanager.hostname": MASTER,
            **{f"yarn.resourcemanager.{name}address": port for name, port in ports.items()},
            "yarn.resourcemanager.webapp.address": f"{MASTER}:{self.web}",
            "yarn.resourcemanager.scheduler.class": (
                "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
            ),
            "yarn.scheduler.minimum-allocation-mb": 64,
            "yarn.resourcemanager.nodes.exclude-path": self.excluded,
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 200,
            # A node that says nothing is lost.
            "yarn.nm.liveness-monitor.expiry-interval-ms": 5000,
            "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms": 60000,
            "yarn.resourcemanager.nodes.include-path": "",
        }
        self.nodes = [Node(self, address) for address in nodes]
        self.leaders = []

    def service_path(self):
        """The service's own jar, and what it needs of the Spark that it is of."""
        jars = spark_home.ensure(spark_home.versions_named([self.service])[0]) / "jars"
        needed = [jar for jar in sorted(jars.glob("*.jar")) if jar.name.startswith(SERVICE_NEEDS)]
        own = sorted((self.home / "service").glob("*.jar"))
        return ":".join(map(str, [*own, *needed]))

    def daemon(self, main_class, conf, name, **environment):
        write_xml(conf / "core-site.xml", self.core())
        java = launch.java_program()
        environment = {
            **os.environ,
            "HADOOP_CONF_DIR": str(conf),
            "JAVA_HOME": os.environ.get("JAVA_HOME") or str(Path(java).resolve().parents[1]),
            **environment,
        }
        (conf / "log4j.properties").write_text(
            "log4j.rootLogger=INFO,A\nlog4j.appender.A=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.A.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.A.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1}: %m%n\n"
        )
        options = ["-Xmx256m", "-Djava.net.preferIPv4Stack=true", *launch.SHORT_LIVED.split()]
        command = [java, *options, *OPENS, "-cp", f"{conf}:{self.home}/yarn/*", main_class]
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.logs / f"{name}.log").open("ab") as out:
            leader = launch.start_group(
                command, stdin=subprocess.DEVNULL, stdout=out, env=environment, cwd=conf
            )
        self.leaders.append(leader)
        return leader

    def core(self):
        return {"fs.defaultFS": "file:///", "hadoop.tmp.dir": self.place / "tmp"}

    def start(self):
        self.conf.mkdir(parents=True)
        self.excluded.write_text("")
        write_xml(self.conf / "yarn-site.xml", self.values)
        self.daemon(
            "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
            self.conf,
            "resource-manager",
        )
        for node in self.nodes:
            node.start()
        self.await_nodes(len(self.nodes))

    def await_nodes(self, count):
        self.wait(f"{count} nodes should be there", lambda: self.metric("activeNodes") == count)

    def wait(self, what, holds, seconds=READY_WITHIN):
        end = time.monotonic() + seconds
        while not holds():
            ended = [leader.args[-1] for leader in self.leaders if leader.poll()]
            if ended:
                raise NotReady(f"{what}: {', '.join(ended)} ended; see {self.logs}")
            if time.monotonic() > end:
                raise NotReady(f"{what}: not within {seconds} s; see {self.logs}")
            time.sleep(0.1)

    def asked(self, what):
        """What the ResourceManager says of `metrics` or `apps/ID`; nothing where it does not."""
        try:
            url = f"http://{MASTER}:{self.web}/ws/v1/cluster/{what}"
            with urllib.request.urlopen(url, timeout=5) as answer:
                (values,) = json.load(answer).values()
        except (OSError, ValueError):
            return {}
        return values

    def metric(self, name):
        """Of the ResourceManager; -1 where it does not answer."""
        return self.asked("metrics").get(name, -1)

    def state_of(self, application):
        """How an application ended, and why, as the ResourceManager has it."""
        told = self.asked(f"apps/{application}")
        words = (told.get(name) for name in ("state", "finalStatus", "diagnostics"))
        return " ".join(str(word).strip() for word in words if word) or "not known"

    def container_logs(self, application):
        """stdout and stderr of its containers, by container id."""
        found = {}
        for node in self.nodes:
            for place in (node.place / "logs" / application).glob("container_*"):
                texts = [
                    (place / name).read_text(errors="replace")
                    for name in ("stdout", "stderr")
                    if (place / name).exists()
                ]
                found[place.name] = "\n".join(texts)
        return found

    @contextlib.contextmanager
    def node_services(self):
        """`faro serve` beside each NodeManager, for containers at NODE_SERVICE."""
        services = []
        try:
            for node in self.nodes:
                logs = self.logs / node.address
                logs.mkdir(parents=True, exist_ok=True)
                services.append(
                    launch.start_node_service(
                        node.place / "local", logs, dict(os.environ), node.address
                    )
                )
            yield
            for service in services:
                launch.end_node_service(service)
        finally:
            for service in services:
                launch.stop_group(service, 0)

    def stop(self):
        for node in self.nodes:
            node.stop()
        for leader in self.leaders:
            if leader.returncode is None:
                launch.stop_group(leader, 0)
        shutil.rmtree(self.place, ignore_errors=True)
