"""The images of docker/ as archives of OCI's image layout, from their Dockerfiles and without an
engine: Debian's packages and what RUN does in them are one layer (docker/base-image), each COPY is
another.

Of a Dockerfile it knows what these two have: ARG and FROM, which name that base, RUN before COPY,
ENV, WORKDIR, USER and ENTRYPOINT. The same packages give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

import artifacts
from artifacts import EPOCH, ROOT, Project, Wrong, files_below, write_tar

DOCKER = ROOT / "docker"
# By the name of the image.
DOCKERFILES = {"faro-serve": DOCKER / "serve.Dockerfile", "faro-spark": DOCKER / "Dockerfile"}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
KIND = "application/vnd.oci.image"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BASE = ("BASE=debian:bookworm-slim", "${BASE}")


class Recipe(NamedTuple):
    """What a Dockerfile says."""

    commands: list[str]
    # Names in the context, and where they go.
    copies: list[tuple[list[str], str]]
    config: dict


def recipe(dockerfile: Path) -> Recipe:
    text = re.sub(r"^\s*#.*\n", "", dockerfile.read_text(), flags=re.M).replace("\\\n", " ")
    found = Recipe([], [], {"Env": [PATH]})
    for word, rest in re.findall(r"^([A-Z]+) +(.+)$", text, re.M):
        if word == "RUN" and not found.copies:
            found.commands.append(rest)
        elif word == "COPY" and not rest.startswith("--"):
            *names, target = rest.split()
            found.copies.append((names, target))
        elif word == "ENV":
            found.config["Env"] += rest.split()
        elif word == "ENTRYPOINT":
            found.config["Entrypoint"] = json.loads(rest)
        elif word in ("WORKDIR", "USER"):
            found.config["WorkingDir" if word == "WORKDIR" else "User"] = rest
        elif word not in ("ARG", "FROM") or rest not in BASE:
            raise Wrong(f"{dockerfile.name}: '{word} {rest}' cannot be done without an engine")
    return found


def base_layer(target: Path, commands: list[str]) -> None:
    """Debian's packages, after the commands have run in them."""
    script = target.with_suffix(".sh")
    script.write_text("\n".join(commands))
    words = [DOCKER / "base-image", "--tar", target, script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Wrong(f"no image: {done.stderr.strip()[-800:]}")
    with tarfile.open(target) as tar:
        stores = [one for one in tar if one.name.endswith("/ssl/certs/java/cacerts")]
    with target.open("r+b") as file:
        for store in stores:
            file.seek(store.offset_data)
            undated = without_dates(file.read(store.size))
            file.seek(store.offset_data)
            file.write(undated)


def without_dates(store: bytes) -> bytes:
    """Java's certificates, as sun.security.provider.JavaKeyStore writes them: a package's script
    imports them, and when it did is in the file."""
    if store[:8] != bytes.fromhex("feedfeed00000002"):
        raise Wrong("Java's certificates are of another format than JKS")
    undated, at = bytearray(store), 12

    def skip(width: int) -> int:
        return at + width + int.from_bytes(store[at : at + width], "big")

    for _ in range(int.from_bytes(store[8:12], "big")):
        at += 4
        at = skip(2)
        undated[at : at + 8] = bytes(8)
        at += 8
        at = skip(2)
        at = skip(4)
    secret = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    undated[at:] = hashlib.sha1(secret + undated[:at]).digest()
    return bytes(undated)


def copied(context: Path, names: list[str], target: str) -> dict[str, Path]:
    """The files of a COPY, by their names in the layer: a folder is copied by its content."""
    found = {}
    for name in names:
        source, place = context / name, target.strip("/")
        if source.is_dir():
            for path in [source, *source.rglob("*")]:
                below = path.relative_to(source).as_posix()
                found[place if path == source else f"{place}/{below}"] = path
        else:
            found[f"{place}/{source.name}" if target.endswith("/") else place] = source
    return found


class Blobs:
    """The folder blobs/ of a layout."""

    def __init__(self, folder: Path):
        self.folder = folder / "blobs" / "sha256"
        self.folder.mkdir(parents=True)

    def add(self, kind: str, content: bytes | Path) -> dict:
        """Its descriptor; a file is moved."""
        if isinstance(content, bytes):
            part = self.folder / "part"
            part.write_bytes(content)
        else:
            part = content
        name = artifacts.digest(part, "sha256")
        size = part.stat().st_size
        part.rename(self.folder / name)
        return {"mediaType": f"{KIND}.{kind}", "digest": f"sha256:{name}", "size": size}


class Hashed(io.RawIOBase):
    """Passes on what is written, with its sum."""

    def __init__(self, out: BinaryIO):
        self.out, self.sum = out, hashlib.sha256()

    def write(self, part: bytes) -> int:
        self.sum.update(part)
        self.out.write(part)
        return len(part)


def write_archive(target: Path, version: str, base: Path, layers: list[dict], config: dict) -> None:
    """`base`: the tar of the first layer; `layers`: the files of each other one."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as place:
        layout = Path(place)
        blobs = Blobs(layout)
        descriptors, sums = [], []
        for entries in (None, *layers):
            part = layout / "layer"
            with part.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, EPOCH) as packed:
                out = Hashed(packed)
                if entries is None:
                    with base.open("rb") as content:
                        shutil.copyfileobj(content, out, 1 << 20)
                else:
                    write_tar(out, entries)
            descriptors.append(blobs.add("layer.v1.tar+gzip", part))
            sums.append(f"sha256:{out.sum.hexdigest()}")
        architecture = ARCHITECTURES[os.uname().machine]
        image = {
            "created": "2025-01-01T00:00:00Z",
            "architecture": architecture,
            "os": "linux",
            "config": {**config, "Labels": {"org.opencontainers.image.version": version}},
            "rootfs": {"type": "layers", "diff_ids": sums},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{KIND}.manifest.v1+json",
            "config": blobs.add("config.v1+json", as_json(image)),
            "layers": descriptors,
        }
        index = {
            **blobs.add("manifest.v1+json", as_json(manifest)),
            "platform": {"architecture": architecture, "os": "linux"},
            "annotations": {"org.opencontainers.image.ref.name": version},
        }
        (layout / "index.json").write_bytes(as_json({"schemaVersion": 2, "manifests": [index]}))
        (layout / "oci-layout").write_bytes(as_json({"imageLayoutVersion": "1.0.0"}))
        with target.open("wb") as out:
            write_tar(out, {p.relative_to(layout).as_posix(): p for p in files_below(layout)})


def as_json(value: dict) -> bytes:
    return json.dumps(value, sort_keys=True, indent=1).encode()


def context_of(name: str, place: Path, jar: Path, command: Path) -> Path:
    """What the image's Dockerfile copies from."""
    if name == "faro-serve":
        place.mkdir()
        shutil.copy(command, place / "faro")
        (place / "faro").chmod(0o755)
        return place
    words = [sys.executable, DOCKER / "build", "--context-only", "--jar", jar]
    context = Path(subprocess.check_output(words, text=True).splitlines()[-1])
    # As other archives: javac's jar says when it was made.
    demo = context / "cluster-demo.jar"
    with zipfile.ZipFile(demo) as opened:
        entries = {one: opened.read(one) for one in opened.namelist() if not one.endswith("/")}
    artifacts.archive(demo, entries)
    return context


def write_images(folder: Path, project: Project, jar: Path, command: Path) -> None:
    """images/NAME-VERSION-ARCHITECTURE.tar, for this machine's architecture."""
    (folder / "images").mkdir(parents=True)
    for name, dockerfile in DOCKERFILES.items():
        found = recipe(dockerfile)
        architecture = ARCHITECTURES[os.uname().machine]
        target = folder / "images" / f"{name}-{project.version}-{architecture}.tar"
        with tempfile.TemporaryDirectory(prefix="faro-image-") as temporary:
            place = Path(temporary)
            context = context_of(name, place / "context", jar, command)
            base_layer(place / "base.tar", found.commands)
            layers = [copied(context, *one) for one in found.copies]
            write_archive(target, project.version, place / "base.tar", layers, found.config)


def unpack(archive: Path, root: Path) -> dict:
    """Unpacks the layers of an archive's one image, checking every sum; its configuration."""
    with tarfile.open(archive) as layout:

        def read(descriptor: dict) -> bytes:
            content = layout.extractfile(f"blobs/{descriptor['digest'].replace(':', '/')}").read()
            if f"sha256:{hashlib.sha256(content).hexdigest()}" != descriptor["digest"]:
                raise Wrong(f"{archive.name}: {descriptor['digest']} has another sum")
            return content

        (index,) = json.load(layout.extractfile("index.json"))["manifests"]
        manifest = json.loads(read(index))
        image = json.loads(read(manifest["config"]))
        for descriptor, wanted in zip(manifest["layers"], image["rootfs"]["diff_ids"]):
            content = gzip.decompress(read(descriptor))
            if f"sha256:{hashlib.sha256(content).hexdigest()}" != wanted:
                raise Wrong(f"{archive.name}: a layer is not {wanted}")
            with tarfile.open(fileobj=io.BytesIO(content)) as layer:
                layer.extractall(root)
    return image
