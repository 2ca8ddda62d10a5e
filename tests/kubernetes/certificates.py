"""Keys and certificates of the cluster, by openssl: one authority, the API server's, and one of a
user who may do everything, as which the daemons and the tests come; and one of each node."""

from __future__ import annotations

import subprocess

DAYS = "2"
NAMES = "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost"


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make(place, addresses, nodes):
    """ca, server, admin and each node (.crt and .key each), and service-accounts (.key, .pub)."""
    place.mkdir(parents=True)
    # Spark's client reads no EC keys without another library.
    new = ("-newkey", "rsa:2048", "-nodes")
    ca, ca_key = place / "ca.crt", place / "ca.key"
    openssl(
        *("req", "-x509", *new, "-keyout", ca_key, "-out", ca, "-days", DAYS),
        *("-subj", "/CN=faro-tests"),
    )
    subjects = {
        "server": "/CN=kube-apiserver",
        "admin": "/O=system:masters/CN=admin",
        **{node: f"/O=system:nodes/CN=system:node:{node}" for node in nodes},
    }
    names = ",".join([NAMES, *(f"IP:{address}" for address in addresses)])
    for name, subject in subjects.items():
        request, key = place / f"{name}.csr", place / f"{name}.key"
        openssl("req", "-new", *new, "-keyout", key, "-out", request, "-subj", subject)
        extensions = place / f"{name}.ext"
        extensions.write_text(f"extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName={names}\n")
        openssl(
            *("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial"),
            *("-out", place / f"{name}.crt", "-days", DAYS, "-extfile", extensions),
        )
    openssl("genrsa", "-out", place / "service-accounts.key", "2048")
    openssl(
        *("rsa", "-in", place / "service-accounts.key", "-pubout"),
        *("-out", place / "service-accounts.pub"),
    )
