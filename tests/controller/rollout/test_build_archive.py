"""Packed builds: what comes over the API is a build and nothing else."""

from __future__ import annotations

import io
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest

from compilers.tables.folders.build_folder import load, save
from controller.rollout import build_archive
from inventory.problems import InputError
from tests.compilers.fabrics import polarfly_build


def packed(files, method=ZIP_STORED):
    stream = io.BytesIO()
    with ZipFile(stream, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def test_there_and_back(tmp_path):
    made = save(polarfly_build(2), tmp_path / "build")
    (tmp_path / "build" / "notes.txt").write_text("not of the build")
    build_archive.unpack(build_archive.pack(tmp_path / "build"), tmp_path / "other")
    assert load(tmp_path / "other").identity == made.identity
    assert not (tmp_path / "other" / "notes.txt").exists()


NO_BUILDS = {
    "nothing": b"",
    "garbage": b"garbage" * 100,
    "no manifest": packed({"fabric.json": b"{}"}),
    "outside": packed({"manifest.json": b"{}", "../evil.json": b""}),
    "absolute": packed({"manifest.json": b"{}", "/etc/evil.json": b""}),
    "outside by a detour": packed({"manifest.json": b"{}", "arrays/../../evil.npy": b""}),
    "cut short": packed({"manifest.json": b"{}"})[:-30],
}
"""Packed files have the time in them, so tests are known by these names."""


@pytest.mark.parametrize("data", NO_BUILDS.values(), ids=NO_BUILDS)
def test_what_is_no_build_is_refused_and_leaves_nothing(tmp_path, data):
    folder = tmp_path / "deep" / "folder"
    with pytest.raises(InputError, match="a ZIP file of a build folder"):
        build_archive.unpack(data, folder)
    assert not list(tmp_path.rglob("*evil*"))
    assert not folder.exists()


@pytest.mark.parametrize("read", [build_archive.identity_in, build_archive.unpack])
def test_what_is_squeezed_and_garbled_is_refused(tmp_path, read):
    data = packed({"manifest.json": bytes(999)}, ZIP_DEFLATED)
    place = 30 + len("manifest.json")
    where = [tmp_path / "folder"] if read is build_archive.unpack else []
    with pytest.raises(InputError, match="a ZIP file of a build folder"):
        read(data[:place] + b"\xff" * 4 + data[place + 4 :], *where)


def test_a_build_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(build_archive, "MOST_BUILD", 100)
    with pytest.raises(InputError, match="more than 100 bytes"):
        build_archive.unpack(packed({"manifest.json": b"x" * 101}), tmp_path / "folder")
