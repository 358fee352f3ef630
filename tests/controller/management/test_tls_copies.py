"""Copies of TLS files in memory."""

from __future__ import annotations

import os
from pathlib import Path

from controller.management.tls_copies import TlsCopies


def test_a_shorter_file_leaves_nothing_of_a_longer_one() -> None:
    def copied() -> list[bytes]:
        return [Path(f"/dev/fd/{descriptor}").read_bytes() for descriptor in copies.descriptors]

    first = [name + b" of the first year" for name in (b"key", b"certificate", b"authority")]
    copies = TlsCopies(first)
    assert copied() == first
    shorter = [b"1", b"2", b"3"]
    copies.renew(shorter)
    assert copied() == shorter
    for descriptor in copies.descriptors:
        os.close(descriptor)
