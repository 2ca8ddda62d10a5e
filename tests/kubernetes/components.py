"""What a cluster is made of, in the cache: Kubernetes' commands, etcd, CoreDNS and a controller of
NetworkPolicies, built from Go modules, and containerd, runc, the network plug-ins, iptables and
ipset, unpacked from Debian's packages. Nothing of it is installed on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import spark_home

HERE = Path(__file__).resolve().parent
KUBERNETES = (
    *("kube-apiserver", "kubelet", "kube-controller-manager"),
    *("kube-scheduler", "kube-proxy", "kubectl"),
)
# By command: the module below go/ that names its version, and its package. Debian's etcd 3.4 does
# not report the progress of watches, without which the API server refuses Spark's.
COMMANDS = {
    **{name: ("kubernetes", f"k8s.io/kubernetes/cmd/{name}") for name in KUBERNETES},
    "etcd": ("kubernetes", "go.etcd.io/etcd/server/v3"),
    "coredns": ("dns", "."),
    "policies": ("policies", "."),
}
PACKAGES = (
    *("containerd", "runc", "containernetworking-plugins", "iptables", "ipset", "libipset13"),
    *("libseccomp2", "libxtables12", "libnftnl11", "libip4tc2", "libip6tc2", "libmnl0"),
    *("libnetfilter-conntrack3", "libnfnetlink0", "conntrack"),
)
# Of a container of Spark: a Java and what the entry point calls.
IMAGE_PACKAGES = (
    *("openjdk-17-jre-headless", "bash", "coreutils", "procps", "tini", "grep", "sed", "mawk"),
)
GO_NEEDED = (1, 24)


class Missing(Exception):
    """What cannot be had here, and why."""


def place():
    return spark_home.cache_root() / "kubernetes"


def version():
    found = re.search(r"k8s.io/kubernetes v([\d.]+)", (HERE / "go/kubernetes/go.mod").read_text())
    return found[1]


def go():
    """A Go that is new enough."""
    candidates = [shutil.which("go"), "/usr/local/go/bin/go"]
    seen = []
    for program in filter(None, candidates):
        with contextlib.suppress(OSError):
            said = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
            seen.append(said.stdout.strip())
            found = re.search(r"go(\d+)\.(\d+)", said.stdout)
            if found and (int(found[1]), int(found[2])) >= GO_NEEDED:
                return program
    needed = ".".join(map(str, GO_NEEDED))
    raise Missing(f"needs Go {needed} or newer to build Kubernetes; found {seen or 'none'}")


@contextlib.contextmanager
def locked():
    place().mkdir(parents=True, exist_ok=True)
    with (place() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure():
    """(directory of the commands, root of Debian's packages); what is there is not made again."""
    with locked():
        commands = place() / f"v{version()}"
        commands.mkdir(exist_ok=True)
        for name in COMMANDS:
            if not (commands / name).exists():
                build(name, commands / name)
        debian = place() / f"debian-{digest(PACKAGES)}"
        if not debian.is_dir():
            unpack(PACKAGES, debian, finish_node)
        return commands, debian


def digest(packages):
    """Other packages, another directory."""
    return hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]


def build(name, target):
    """Links it in one go with what was compiled before: Go keeps that in its own cache."""
    major, minor, _ = version().split(".")
    stamp = "k8s.io/component-base/version."
    flags = f"-s -w -X {stamp}gitVersion=v{version()}"
    flags += f" -X {stamp}gitMajor={major} -X {stamp}gitMinor={minor}"
    source, package = COMMANDS[name]
    spark_home.say(f"  building {name} (minutes, once) ...")
    part = target.with_suffix(".part")
    words = ["nice", "-n", "10", go(), "build", "-p", "2", "-trimpath", "-ldflags", flags]
    done = subprocess.run(
        [*words, "-o", str(part), package],
        cwd=HERE / "go" / source,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Missing(f"{name} cannot be built: {done.stderr.strip()[-1000:]}")
    part.rename(target)


def apt(*words, **options):
    if not shutil.which(words[0]):
        raise Missing(f"needs Debian's packages, and there is no {words[0]}")
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise Missing(f"{' '.join(words)[:200]}: {done.stderr.strip()[-500:]}")
    return done.stdout


def unpack(packages, target, finish):
    """No script of a package runs."""
    spark_home.say(f"  unpacking {len(packages)} of Debian's packages into {target.name} ...")
    part = target.with_suffix(".part")
    archives = target.with_suffix(".archives")
    for old in (part, archives):
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir(parents=True)
    apt("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *packages, cwd=archives)
    for name in ("bin", "sbin", "lib", "lib64"):
        (part / "usr" / name).mkdir(parents=True)
        (part / name).symlink_to(f"usr/{name}")
    for archive in sorted(archives.glob("*.deb")):
        # dpkg -x would replace the links to usr by directories.
        command = 'dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink -C "$1"'
        apt("bash", "-o", "pipefail", "-c", command, str(archive), str(part))
    finish(part)
    shutil.rmtree(archives)
    part.rename(target)


def finish_node(root):
    """What the packages' scripts would have linked."""
    for name in ("iptables", "ip6tables"):
        for kind in ("", "-save", "-restore"):
            link = root / "usr" / "sbin" / f"{name}{kind}"
            if not link.exists():
                link.symlink_to("xtables-nft-multi")


def image_root():
    """A root file system with a Java, for images."""
    with locked():
        root = place() / f"image-java-17-{digest(IMAGE_PACKAGES)}"
        if not root.is_dir():
            unpack(closure(IMAGE_PACKAGES), root, finish_image)
        return root


def closure(packages):
    """These packages and all that they depend on, as on an empty system."""
    words = ["apt-get", "-o", "Dir::State::status=/dev/null", "-o", "APT::Install-Recommends=false"]
    said = apt(*words, "--print-uris", "-y", "install", *packages)
    return re.findall(r"^'[^']*' ([^_]+)_", said, re.M)


def finish_image(root):
    java = next((root / "usr/lib/jvm").glob("java-17-openjdk-*"))
    for name in ("java", "keytool"):
        (root / "usr" / "bin" / name).symlink_to(f"/usr/lib/jvm/{java.name}/bin/{name}")
    # The entry point of Spark's own images, and what it runs before a pod ends, need it.
    (root / "usr" / "bin" / "awk").symlink_to("mawk")
    (root / "usr" / "bin" / "sh").exists() or (root / "usr" / "bin" / "sh").symlink_to("bash")
    (root / "etc" / "passwd").write_text(
        "root:x:0:0:root:/root:/bin/bash\nspark:x:185:0:spark:/opt/spark:/bin/bash\n"
    )
    (root / "etc" / "group").write_text("root:x:0:\n")
    (root / "etc" / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    for name in ("tmp", "proc", "sys", "dev", "run", "opt/spark/work-dir"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    # As in Spark's own images, whose user is of group 0.
    (root / "opt/spark/work-dir").chmod(0o775)
    for name in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(root / name, ignore_errors=True)
    # Java looks for libraries at well-known places; the cache of the loader saves it the search.
    subprocess.run(["ldconfig", "-r", str(root)], check=True)
