# SPDX-License-Identifier: Apache-2.0
"""Certificates of authorities of our own, made by the command openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Pair:
    """The paths of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self.name = name
        self.certificate = directory / f"{name}.pem"
        self._key = directory / f"{name}.key"
        openssl(
            "req", "-x509", *CURVE, "-keyout", self._key, "-out", self.certificate,
            "-days", "30", "-subj", f"/CN={name}",
        )  # fmt: skip

    def sign(self, name: str, extensions: str = "", days: int = 30) -> Pair:
        """A certificate whose common name this is. -1 days: its time is over."""
        stem = self.directory / f"{self.name}-{name}{days}"
        pair = Pair(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request, extra = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        extra.write_text(extensions)
        openssl("req", *CURVE, "-keyout", pair.key, "-out", request, "-subj", f"/CN={name}")
        openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key,
            "-CAcreateserial", "-out", pair.certificate, "-days", str(days),
            "-extfile", extra,
        )  # fmt: skip
        pair.key.chmod(0o600)
        return pair

    def sign_server(self, days: int = 30) -> Pair:
        names = "subjectAltName=DNS:localhost,DNS:voxels.example.org,IP:127.0.0.1\n"
        return self.sign("localhost", names + "extendedKeyUsage=serverAuth\n", days)
