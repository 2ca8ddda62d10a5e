"""The images of the cluster, built here: of a pod's first container, and of Spark with Faro's jar
on a root file system of Debian's packages. They are imported, not pulled."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import components
import spark_home

HERE = Path(__file__).resolve().parent
PAUSE = "localhost/pause:1"
JAVA_HOME = "/usr/lib/jvm/java-17-openjdk-amd64"
JOBS = "/opt/spark/jobs/jobs.jar"
SPARK_PARTS = ("bin", "sbin", "jars")
OWN_SCRIPTS = HERE / "image"
SCRIPTS = ("entrypoint.sh", "decom.sh")
OWNER = ("--numeric-owner", "--owner=0", "--group=0", "--mtime=@0", "--sort=name")


def spark_image(version):
    return f"localhost/spark-faro:{version}"


def layer(target, directory, *words):
    """A tar of what is in the directory."""
    subprocess.run(["tar", "-C", directory, *OWNER, "-cf", target, *words], check=True)
    return target


def digest(path):
    with path.open("rb") as file:
        total = hashlib.sha256()
        while chunk := file.read(1 << 20):
            total.update(chunk)
    return total.hexdigest()


def archive(target, name, layers, config):
    """An archive of an image, as `docker save` writes it, which containerd imports."""
    digests = {path: digest(path) for path in layers}
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digests[p]}" for p in layers]},
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    members = [f"{digests[path]}/layer.tar" for path in layers]
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": members}]).encode()
    with tarfile.open(target, "w") as out:
        for member, text in ((config_name, config), ("manifest.json", manifest)):
            info = tarfile.TarInfo(member)
            info.size = len(text)
            out.addfile(info, io.BytesIO(text))
        for member, path in zip(members, layers):
            out.add(path, member)
    return target


class Images:
    """Makes them in `place`, a directory; each layer once. `scripts`: where entrypoint.sh and
    decom.sh are."""

    def __init__(self, place, scripts):
        self.place, self.scripts = Path(place), Path(scripts)
        self.place.mkdir(parents=True, exist_ok=True)

    def pause(self):
        root = self.place / "pause"
        root.mkdir()
        subprocess.run(
            ["cc", "-static", "-Os", "-o", root / "pause", HERE / "image" / "pause.c"], check=True
        )
        made = layer(self.place / "pause-layer.tar", root, ".")
        return archive(self.place / "pause.tar", PAUSE, [made], {"Entrypoint": ["/pause"]})

    def base(self):
        target = self.place / "base-layer.tar"
        return target if target.exists() else layer(target, components.image_root(), ".")

    def spark(self, version, faro_jar, faro_command, jobs_jar):
        """Spark of a version, with Faro's jar beside its own, and the command faro."""
        home = spark_home.ensure(spark_home.versions_named([version])[0])
        move = ("--transform", "s,^,opt/spark/,")
        layers = [
            self.base(),
            layer(self.place / f"spark-{version}-layer.tar", home, *move, *SPARK_PARTS),
            self.own_layer(faro_jar, faro_command, jobs_jar),
        ]
        config = {
            "Entrypoint": ["/opt/entrypoint.sh"],
            "WorkingDir": "/opt/spark/work-dir",
            "User": "185",
            "Env": [
                "PATH=/usr/local/bin:/usr/bin:/bin",
                f"JAVA_HOME={JAVA_HOME}",
                "SPARK_HOME=/opt/spark",
            ],
        }
        target = self.place / f"spark-{version}.tar"
        archive(target, spark_image(version), layers, config)
        layers[1].unlink()
        return target

    def own_layer(self, faro_jar, faro_command, jobs_jar):
        target = self.place / "own-layer.tar"
        if target.exists():
            return target
        root = self.place / "own"
        for name in ("opt/spark/jars", "opt/spark/jobs", "usr/local/bin"):
            (root / name).mkdir(parents=True)
        files = {
            faro_jar: "opt/spark/jars/faro-spark.jar",
            jobs_jar: JOBS.lstrip("/"),
            faro_command: "usr/local/bin/faro",
            **{self.scripts / name: f"opt/{name}" for name in SCRIPTS},
        }
        for source, name in files.items():
            shutil.copy(source, root / name)
        for name in SCRIPTS:
            (root / "opt" / name).chmod(0o755)
        return layer(target, root, ".")
