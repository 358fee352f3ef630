"""Copies of TLS files in memory."""

from __future__ import annotations

import os
from pathlib import Path

from controller.management.tls_copies import TlsCopies


def test_a_shorter_file_leaves_nothing_of_a_longer_one() -> None:
    def copied() -> dict[str, bytes]:
        return {field: Path(path).read_bytes() for field, path in copies.paths.items()}

    first = {"key": b"a key", "certificate": b"a certificate", "authority": b"an authority"}
    copies = TlsCopies(first)
    assert copied() == first
    shorter = {"authority": b"3", "certificate": b"2", "key": b"1"}
    copies.renew(shorter)
    assert copied() == shorter
    for descriptor in copies.descriptors.values():
        os.close(descriptor)
