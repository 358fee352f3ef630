"""Copies of TLS files: the HTTP process never gets a new key with an old certificate."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controller.management.tls_copies import TlsCopies
from controller.settings import Tls


def test_files_are_copied_all_or_none(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("key", "certificate", "authority")]

    def write(text: str) -> list[bytes]:
        for file in files:
            file.write_text(f"{file.name} {text}")
        return [file.read_bytes() for file in files]

    def copied() -> list[bytes]:
        return [os.pread(descriptor, 1000, 0) for descriptor in copies.descriptors]

    first = write("of the first year")
    copies = TlsCopies(Tls(*files))
    assert copied() == first
    write("of the second year")
    files[1].unlink()
    with pytest.raises(FileNotFoundError):
        copies.renew()
    assert copied() == first
    shorter = write("3")
    copies.renew()
    assert copied() == shorter
