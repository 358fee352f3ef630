"""The build folder: same bytes for same inputs, whole or not at all, damage found."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.tables.folders import build_format
from compilers.tables.folders.build_folder import load, load_planes, save, save_planes
from compilers.tables.folders.build_format import FORMAT
from compilers.tables.folders.folder_files import FolderFiles
from compilers.tables.folders.verified_mark import (
    mark_verified,
    require_verified,
    verified_identity,
)
from inventory.problems import InputError
from tests.compilers.fabrics import polarfly_build
from tests.compilers.signed import sign


def test_round_trip_keeps_everything(tmp_path: Path) -> None:
    build = polarfly_build(4, hosts=2)
    saved = save(build, tmp_path / "b")
    assert saved.identity == load(tmp_path / "b").identity
    for name in ("routes", "classes"):
        ours, theirs = getattr(build.tables, name), getattr(saved.tables, name)
        for field in ours.__dataclass_fields__:
            assert (getattr(ours, field) == getattr(theirs, field)).all(), field
    assert saved.tables.routes.exact
    assert saved.wiring.names == build.wiring.names
    assert (saved.wiring.far_port == build.wiring.far_port).all()
    assert (saved.addressing.host_mac == build.addressing.host_mac).all()
    assert saved.addressing.host(3, 1) == build.addressing.host(3, 1)
    assert saved.topology.title() == "polarfly q=4"


def test_same_inputs_same_bytes(tmp_path: Path) -> None:
    one, two = save(polarfly_build(5), tmp_path / "a"), save(polarfly_build(5), tmp_path / "b")
    assert one.identity == two.identity
    for file in sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.*")):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    other = save(replace(polarfly_build(5), name="other"), tmp_path / "c")
    assert other.identity != one.identity


def test_an_interrupted_write_leaves_the_old_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = save(polarfly_build(3), tmp_path / "b")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(polarfly_build(4), tmp_path / "b")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    assert load(tmp_path / "b").identity == before.identity


def test_a_build_must_be_verified_and_unchanged(tmp_path: Path) -> None:
    build = save(polarfly_build(3), tmp_path / "b")
    with pytest.raises(InputError, match="has passed polarfab verify"):
        require_verified(tmp_path / "b", build)
    mark_verified(tmp_path / "b", build.identity, {"pairs": 156})
    require_verified(tmp_path / "b", build)

    file = tmp_path / "b" / "arrays" / "route_egress.npy"
    table = np.load(file)
    table[0, 5] ^= 1
    np.save(file, table)
    with pytest.raises(InputError, match="a changed file") as caught:
        load(tmp_path / "b")
    assert [Path(p.file).name for p in caught.value.problems] == ["route_egress.npy"]
    mark_verified(tmp_path / "b", build.identity, None)
    assert not (tmp_path / "b" / "verified.json").exists()


def test_a_damaged_build_that_is_replaced_again_and_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(polarfly_build(3), tmp_path / "b")
    (tmp_path / "b" / "arrays" / "far.npy").write_bytes(b"")
    monkeypatch.setattr(FolderFiles, "moved", lambda _: True)
    with pytest.raises(InputError, match=r"far\.npy"):
        load(tmp_path / "b")


@pytest.mark.parametrize("name", ["arrays", "arrays/far.npy", "fabric.json", "manifest.json"])
def test_links_in_a_build_are_not_followed(tmp_path: Path, name: str) -> None:
    save(polarfly_build(3), tmp_path / "b")
    (tmp_path / "b" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "b" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"a link|symbolic links") as caught:
        load(tmp_path / "b")
    assert Path(caught.value.problems[0].file).is_relative_to(tmp_path / "b" / name)


def test_the_mark_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root")
    build = save(polarfly_build(3), tmp_path / "b")
    (tmp_path / "b" / "verified.json").symlink_to(tmp_path / "passwd")
    assert verified_identity(tmp_path / "b") == ""
    mark_verified(tmp_path / "b", build.identity, {"pairs": 156})
    assert (tmp_path / "passwd").read_text() == "root"
    assert verified_identity(tmp_path / "b") == build.identity


def test_only_listed_planes_are_the_builds(tmp_path: Path) -> None:
    place = tmp_path / "b"
    save_planes([polarfly_build(3), polarfly_build(3)], place)
    shutil.copytree(place / "plane-1", place / "plane-7")
    with pytest.raises(InputError, match=f"{place}/plane-7: required only files that polarfab"):
        save_planes([polarfly_build(2), polarfly_build(2)], place)
    assert [build.name for build in load_planes(place)] == ["q3", "q3"]
    shutil.rmtree(place / "plane-7")
    save_planes([polarfly_build(2), polarfly_build(2)], place)
    assert [build.name for build in load_planes(place)] == ["q2", "q2"]


def test_folders_that_are_no_build_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a folder without manifest\.json"):
        load(tmp_path)
    with pytest.raises(InputError, match="given no such folder"):
        load(tmp_path / "nowhere")
    save(polarfly_build(3), tmp_path / "b")
    (tmp_path / "b" / "arrays" / "port.npy").write_bytes(b"garbage")
    with pytest.raises(InputError, match="a changed file"):
        load(tmp_path / "b")
    (tmp_path / "b" / "arrays" / "port.npy").unlink()
    with pytest.raises(InputError, match="no file"):
        load(tmp_path / "b")
    (tmp_path / "b" / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        load(tmp_path / "b")


@pytest.mark.parametrize(
    ("number", "given"),
    [
        (None, "no format number, made by an earlier polarfab"),
        (1, "format 1, made by an earlier polarfab"),
        (99, "format 99, made by a later polarfab"),
    ],
)
def test_a_build_of_another_format_is_refused(
    tmp_path: Path, number: int | None, given: str
) -> None:
    save(polarfly_build(3), tmp_path / "b")
    manifest = json.loads((tmp_path / "b/manifest.json").read_text())
    assert manifest.pop("format") == FORMAT
    more = {"format": number} if number is not None else {}
    (tmp_path / "b/manifest.json").write_text(json.dumps(manifest | more))
    with pytest.raises(InputError) as caught:
        load(tmp_path / "b")
    (problem,) = caught.value.problems
    assert problem.file == str(tmp_path / "b")
    assert problem.required == f"a build of format {FORMAT}, which this polarfab reads"
    assert problem.given == given
    assert problem.todo == (
        "compile the fabric again with this release, or use the release that made it"
    )


def test_names_that_are_gone_since_are_named(tmp_path: Path) -> None:
    save(polarfly_build(3), tmp_path / "b")
    for name, old, new in (
        ("manifest.json", f'"format": {FORMAT}', '"format": 1'),
        ("fabric.json", '"balance": "minimal"', '"balance": "spraypoint"'),
        ("fabric.json", '"family": "polarfly"', '"family": "polarfish"'),
    ):
        text = (tmp_path / "b" / name).read_text()
        assert old in text
        (tmp_path / "b" / name).write_text(text.replace(old, new))
    with pytest.raises(InputError, match="with balance spraypoint and family polarfish, which"):
        load(tmp_path / "b")


def test_an_earlier_format_is_read_by_its_conversions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = save(polarfly_build(3), tmp_path / "b")
    monkeypatch.setattr(build_format, "FORMAT", FORMAT + 2)
    with pytest.raises(InputError, match=f"a build of format {FORMAT + 2}"):
        load(tmp_path / "b")
    conversions = {
        FORMAT: lambda fabric: fabric | {"name": fabric["name"] + "x"},
        FORMAT + 1: lambda fabric: fabric | {"name": fabric["name"] + "y"},
    }
    monkeypatch.setattr(build_format, "CONVERSIONS", conversions)
    assert load(tmp_path / "b").name == f"{build.name}xy"


@pytest.mark.parametrize(
    ("edit", "given"),
    [
        ({"alternates": "most"}, "alternates is 'most', not one of none, shortest, some, all"),
        ({"alternates": None}, "alternates: nothing"),
        ({"marks": 1}, "marks: 1"),
        ({"weights": "minimal-share"}, "minimal_share goes with weights: minimal-share"),
        ({"weights": "minimal-share", "minimal_share": "1/0"}, "minimal_share: 1/0"),
        ({"weights": "minimal-share", "minimal_share": "3"}, "minimal_share is 3, not from 0 to 1"),
        ({"marks": True, "disjoint": True}, "disjoint does not go with marks"),
        ({"alternates": "all", "intermediates": True}, "intermediates go with alternates: none"),
    ],
)
def test_what_tables_cannot_mean_is_damage(
    tmp_path: Path, edit: dict[str, object], given: str
) -> None:
    """`verify` passed builds that said the last two, and looked at less than they say."""
    save(polarfly_build(3), tmp_path / "b")
    fabric = json.loads((tmp_path / "b/fabric.json").read_text())
    fabric["forwarding"] |= edit
    (tmp_path / "b/fabric.json").write_text(json.dumps(fabric))
    sign(tmp_path / "b")
    with pytest.raises(InputError) as caught:
        load(tmp_path / "b")
    (problem,) = caught.value.problems
    assert problem.file == str(tmp_path / "b/fabric.json")
    assert given in problem.given


def test_a_manifest_without_the_fabric_is_damaged(tmp_path: Path) -> None:
    save(polarfly_build(3), tmp_path / "b")
    manifest = json.loads((tmp_path / "b/manifest.json").read_text())
    del manifest["files"]["fabric.json"]
    (tmp_path / "b/manifest.json").write_text(json.dumps(manifest))
    sign(tmp_path / "b")
    with pytest.raises(InputError, match=r"a damaged file \(fabric.json\)"):
        load(tmp_path / "b")


def test_names_are_those_of_the_folder_that_was_opened(tmp_path: Path) -> None:
    opened, other = tmp_path / "build", tmp_path / "other"
    (opened / "sub").mkdir(parents=True)
    (opened / "sub/one").touch()
    (opened / "link").symlink_to("sub")
    other.mkdir()
    (other / "two").touch()
    with FolderFiles(opened) as files:
        opened.rename(tmp_path / "earlier")
        other.rename(opened)
        assert files.names() == ["link", "sub/one"]
        shutil.rmtree(tmp_path / "earlier")
        assert files.names() == []
