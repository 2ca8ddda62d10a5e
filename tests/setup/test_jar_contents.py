"""What tests/setup/jar-contents refuses: what can inject faults, but for the jar of the tests, and
debug information."""

from __future__ import annotations

import platform
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent / "jar-contents"
FAULTS = b"FARO_FAULTS"


@pytest.fixture
def checked(tmp_path):
    """A function that checks a jar whose library has these bytes behind those of a program."""

    def run(more: bytes, *options: str) -> subprocess.CompletedProcess:
        binary = Path(shutil.which("env")).read_bytes() + more
        jar = tmp_path / "some.jar"
        with zipfile.ZipFile(jar, "w") as file:
            file.writestr(f"META-INF/native/linux-{platform.machine()}/libfaro_jni.so", binary)
        command = [PROGRAM, *options, jar]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_a_library_without_faults_is_described(checked):
    done = checked(b"")
    assert done.returncode == 0, done.stderr
    assert "libfaro_jni.so" in done.stdout


def test_a_library_with_faults_is_refused(checked):
    done = checked(FAULTS)
    assert done.returncode == 1
    assert "can inject faults: never release it" in done.stderr


def test_the_library_of_the_tests_has_faults(checked):
    assert checked(FAULTS, "--tests").returncode == 0
    done = checked(b"", "--tests")
    assert done.returncode == 1
    assert "cannot inject faults" in done.stderr


def test_a_program_with_faults_is_refused(tmp_path, checked):
    assert checked(b"").returncode == 0
    program = tmp_path / f"faro-{platform.machine()}"
    program.write_bytes(Path(shutil.which("env")).read_bytes() + FAULTS)
    done = subprocess.run(
        [PROGRAM, tmp_path / "some.jar", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert program.name in done.stderr


def test_debug_information_is_refused(tmp_path):
    source, jar = tmp_path / "library.c", tmp_path / "some.jar"
    source.write_text("int one(void) { return 1; }\n")
    library = tmp_path / "libfaro_jni.so"
    subprocess.run(["cc", "-g", "-shared", "-fPIC", "-o", library, source], check=True)
    with zipfile.ZipFile(jar, "w") as file:
        file.write(library, f"META-INF/native/linux-{platform.machine()}/{library.name}")
    done = subprocess.run([PROGRAM, jar], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "has debug information" in done.stderr
