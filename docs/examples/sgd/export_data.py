#!/usr/bin/env python3
"""Writes digits.csv and breast_cancer.csv, the class in the last column, into a directory.

Source: scikit-learn's bundled data sets (PyPI, BSD-3-Clause), taken out of its wheel, which need
not be installed:
  digits         1797 images of 8 x 8 pixels of handwritten digits, 10 classes; test part of
                 E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI
                 repository (CC BY 4.0)
  breast_cancer  569 cases of 30 measurements each, malignant or benign; W. Wolberg,
                 O. Mangasarian and N. Street, Breast Cancer Wisconsin (Diagnostic), UCI
                 repository (CC BY 4.0)
"""

import argparse
import gzip
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "scikit-learn==1.5.2"
# Any one that exists: the data are the same in all.
BUILD = ["--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--only-binary", ":all:"]
FOLDER = "sklearn/datasets/data/"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    target = parser.parse_args().directory
    if all((target / name).is_file() for name in ("digits.csv", "breast_cancer.csv")):
        return
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--disable-pip-version-check",
                *BUILD,
                "-d",
                scratch,
                WHEEL,
            ],
            check=True,
        )
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            digits = gzip.decompress(archive.read(FOLDER + "digits.csv.gz"))
            # Its first line says what the columns are.
            cancer = archive.read(FOLDER + "breast_cancer.csv").split(b"\n", 1)[1]
    for name, content in (("digits.csv", digits), ("breast_cancer.csv", cancer)):
        part = target / (name + ".part")
        part.write_bytes(content)
        part.rename(target / name)


if __name__ == "__main__":
    main()
