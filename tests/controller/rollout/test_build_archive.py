"""Packed builds: what comes over the API is a build and nothing else."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
from hashlib import sha256
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile

import pytest

from compilers.tables.folders.build_folder import load, save
from controller.rollout import build_archive
from inventory.problems import InputError
from polarfab.fabric import Fabric
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


def test_the_numbers_of_a_build_go_with_it(tmp_path):
    """A controller that gets a build without a file of its manifest refuses it."""
    inventory = {
        "node_types": {"leaf": {"ports": [{"name": "eth{}", "count": 5}]}},
        "generate": {"type": "leaf"},
    }
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}
    made = save(Fabric.from_spec(spec, inventory).build, tmp_path / "build")
    build_archive.unpack(build_archive.pack(tmp_path / "build"), tmp_path / "other")
    assert load(tmp_path / "other").allocations == made.allocations
    assert made.allocations


def test_a_build_of_switches_with_many_ports_fits(tmp_path):
    """One of 500 switches with 40 ports to others, of 40 MB, was refused: 24 MB were allowed."""
    spec = {
        "name": "lab",
        "topology": {"family": "jellyfish", "nodes": 60, "degree": 40, "seed": 1},
        "routing": {"balance": "ecmp", "transit": "ecmp"},
    }
    save(Fabric.from_spec(spec).build, tmp_path / "build")
    size = len(build_archive.pack(tmp_path / "build"))
    assert size < build_archive.BYTES_A_PAIR * 60**2


MANY = packed({f"{number}": b"" for number in range(2_000)})
END = MANY.rindex(b"PK\5\6")
FAR_AWAY = b"PK\6\6" + b"\xff" * 52 + b"PK\6\7" + bytes(4) + bytes(8) + b"\1\0\0\0"
"""The end of an archive of more bytes than there are, and its locator (APPNOTE.TXT, 4.3.14)."""


def with_far_offset(data):
    """The archive of one file, whose local header would begin after 2^63 bytes."""
    start, end = data.rindex(b"PK\1\2"), data.rindex(b"PK\5\6")
    extra = struct.pack("<HHQ", 1, 8, 1 << 63)
    entry = bytearray(data[start:end] + extra)
    struct.pack_into("<H", entry, 30, len(extra))
    struct.pack_into("<I", entry, 42, 0xFFFFFFFF)
    record = bytearray(data[end:])
    struct.pack_into("<I", record, 12, len(entry))
    return data[:start] + bytes(entry) + bytes(record)


NO_BUILDS = {
    "an offset of 64 bits": with_far_offset(packed({"manifest.json": b"{}"})),
    "many files": MANY,
    "many files and a comment": MANY[:-2] + b"\3\0...",
    "sizes of 64 bits": FAR_AWAY + MANY[END:],
    "nothing": b"",
    "garbage": b"garbage" * 100,
    "no manifest": packed({"fabric.json": b"{}"}),
    "a list as manifest": packed({"manifest.json": b"[]"}),
    "a text as manifest": packed({"manifest.json": b'"x"'}),
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


@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
def test_a_manifest_that_is_larger_than_it_says_is_not_unpacked(method):
    """One of 1,614 bytes became 4 GB, and held a repair for 40 s."""
    data = packed({"manifest.json": bytes(64 << 20)}, method)
    entry = data.rindex(b"PK\1\2")
    data = data[: entry + 24] + struct.pack("<I", 1000) + data[entry + 28 :]
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="a ZIP file of a build folder"):
            build_archive.identity_in(data)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("files", "switches", "why"),
    [
        ({"fabric.json": bytes(300_000)}, 7, "a fabric.json of more than 276,480 bytes"),
        ({}, -(10**6), "a manifest that is none"),
    ],
)
def test_sizes_that_a_build_cannot_have(tmp_path, files, switches, why):
    """A million switches below zero allowed a gigabyte, on a fabric of 13. While a fabric.json of
    8 MB was parsed, a repair waited for 3 s."""
    with pytest.raises(InputError, match=why):
        build_archive.unpack(upload(files, switches), tmp_path / "folder", switches=100)


@pytest.mark.parametrize("name", ["many files", "many files and a comment", "sizes of 64 bits"])
def test_a_large_directory_is_refused_before_it_is_read(name, monkeypatch):
    """A directory of a million files, uploaded by a token for moves, held a repair for 7 s."""
    monkeypatch.setattr(build_archive, "ZipFile", None)
    with pytest.raises(InputError, match="a directory of more than 65,536 bytes"):
        build_archive.identity_in(NO_BUILDS[name])


@pytest.mark.parametrize(("method", "header"), [(ZIP_DEFLATED, 0), (ZIP_BZIP2, 0), (ZIP_LZMA, 9)])
@pytest.mark.parametrize("read", [build_archive.identity_in, build_archive.unpack])
def test_what_is_squeezed_and_garbled_is_refused(tmp_path, read, method, header):
    data = packed({"manifest.json": bytes(range(256)) * 9}, method)
    place = 30 + len("manifest.json") + header
    where = [tmp_path / "folder"] if read is build_archive.unpack else []
    with pytest.raises(InputError, match="a ZIP file of a build folder"):
        read(data[:place] + b"\xff" * 4 + data[place + 4 :], *where)


def with_gap(data, size):
    """The archive of one file, with so many bytes between the file and the directory."""
    start, end = data.rindex(b"PK\1\2"), data.rindex(b"PK\5\6")
    record = bytearray(data[end:])
    struct.pack_into("<I", record, 16, start + size)
    return data[:start] + bytes(size) + data[start:end] + bytes(record)


def with_comment(data, size):
    """The archive, with a comment of so many bytes."""
    return data[:-2] + struct.pack("<H", size) + b"x" * size


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: bytes(1_300_000) + data,
        lambda data: b"\0" + data,
        lambda data: with_gap(data, 1_300_000),
        lambda data: with_comment(data, 100),
    ],
    ids=["before", "a byte before", "between", "after"],
)
def test_an_archive_has_nothing_besides_the_files(spoil):
    """1.3 MB in front of the first file were taken, as a self-extracting archive has."""
    data = packed({"manifest.json": json.dumps({"switches": 7, "files": {}})})
    assert build_archive.identity_in(data)
    with pytest.raises(InputError, match="bytes that belong to no file"):
        build_archive.identity_in(spoil(data))


ZEROS = "arrays/zeros.npy"


def upload(files, switches=7, **more):
    """A packed build whose manifest names these files."""
    said = {
        "switches": switches,
        "files": {n: sha256(data).hexdigest() for n, data in files.items()},
    }
    return packed({"manifest.json": json.dumps(said), **files, **more}, ZIP_DEFLATED)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (upload({}, **{ZEROS: bytes(1000)}), "does not name"),
        (upload({ZEROS: bytes(9 << 20)}), "more than 8,401,152 bytes"),
        (
            packed(
                {
                    "manifest.json": json.dumps({"switches": 7, "files": {ZEROS: "0" * 64}}),
                    ZEROS: b"1",
                }
            ),
            "another digest",
        ),
    ],
    ids=["unnamed", "large", "other"],
)
def test_an_upload_has_what_its_manifest_names_and_no_more(tmp_path, data, why):
    """4 MB with 900 MB of zeros were unpacked, and an echo waited for 15 s."""
    with pytest.raises(InputError, match=why):
        build_archive.unpack(data, tmp_path / "folder")
    assert sum(file.stat().st_size for file in tmp_path.rglob("*.npy")) <= 1


def test_how_large_an_upload_may_be_is_not_for_its_sender_to_say(tmp_path):
    """With 4,000 switches in its manifest one of a gigabyte was unpacked, on a fabric of 13."""
    data = upload({ZEROS: bytes(9 << 20)}, switches=4000)
    with pytest.raises(InputError, match="4,000 switches, where this fabric takes 100"):
        build_archive.unpack(data, tmp_path / "folder", switches=100)
    assert not (tmp_path / "folder").exists()
