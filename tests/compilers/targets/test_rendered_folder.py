"""Rendered folders: exchanged whole, with digests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compilers.tables.build import Build
from compilers.tables.folders.build_folder import save
from compilers.tables.folders.folder_contents import VERIFIED
from compilers.targets.rendering.folder_check import check_folder
from compilers.targets.rendering.plane_rendering import PlaneRendering
from compilers.targets.rendering.rendered_folder import RENDERED
from inventory.problems import InputError
from tests.compilers.routed import routed

BUILD = replace(routed(q=2), identity="0123456789abcdef")
OTHER = replace(BUILD, identity="fedcba9876543210")


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != RENDERED)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_a_render_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    PlaneRendering([BUILD], "frr").into(out)
    before = files(out)
    names = tuple(f"n{v}" for v in range(7))
    other = replace(OTHER, wiring=replace(OTHER.wiring, names=names))
    PlaneRendering([other], "frr").into(out)
    assert {name.split("/")[0] for name in files(out)} == {*names}
    assert len(files(out)) == len(before)
    state = check_folder(out)
    assert (state.kind, state.builds, state.strays) == ("render", (OTHER.identity,), ())
    assert (state.files, state.damaged) == (len(before), ())


def test_another_target_and_renders_below_stay(tmp_path: Path) -> None:
    out = tmp_path / "lab"
    PlaneRendering([BUILD], "frr").into(out / "frr")
    PlaneRendering([BUILD], "containerlab", options={"system": "frr"}).into(out)
    PlaneRendering([BUILD], "linux").into(out)
    before = files(out)
    PlaneRendering([OTHER], "linux").into(out)
    assert files(out).keys() == before.keys()
    for folder in (out, out / "frr"):
        assert (check_folder(folder).damaged, check_folder(folder).strays) == ((), ())
    assert check_folder(out).builds == (BUILD.identity, OTHER.identity)


def test_one_switch_of_a_render(tmp_path: Path) -> None:
    out = tmp_path / "out"
    PlaneRendering([BUILD], "frr").into(out)
    before = files(out)
    PlaneRendering([OTHER], "frr", nodes=["3"]).into(out)
    after = files(out)
    assert {name for name in after if after[name] != before[name]} == {
        name for name in before if name.startswith("3/") and BUILD.identity.encode() in before[name]
    }
    assert check_folder(out).damaged == ()
    assert check_folder(out).builds == (BUILD.identity, OTHER.identity)


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    out, system = tmp_path / "out", tmp_path / "etc"
    system.mkdir()
    out.mkdir()
    (out / "0").symlink_to(system)
    (out / RENDERED).symlink_to(tmp_path / "passwd")
    with pytest.raises(InputError, match="the list of rendered files"):
        PlaneRendering([BUILD], "frr").into(out)
    (out / RENDERED).unlink()
    with pytest.raises(InputError, match=r"out/0: required only files that polarfab wrote"):
        PlaneRendering([BUILD], "frr").into(out)
    (out / "0").unlink()
    PlaneRendering([BUILD], "frr").into(out)
    assert not list(system.iterdir())
    assert not (tmp_path / "passwd").exists()
    assert (out / "0" / "frr.conf").is_file()


def test_damage_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out"
    PlaneRendering([BUILD], "frr").into(out)
    (out / "0" / "frr.conf").write_text("!")
    (out / "1" / "frr.conf").unlink()
    (out / "2" / "frr.conf").rename(tmp_path / "frr.conf")
    (out / "2" / "frr.conf").symlink_to(tmp_path / "frr.conf")
    said = {Path(p.file).parent.name: p.given for p in check_folder(out).damaged}
    assert said == {"0": "a changed file", "1": "no file", "2": "a link"}
    (out / RENDERED).write_text(json.dumps({"format": 1, "targets": {"frr": []}}))
    with pytest.raises(InputError, match="a damaged file"):
        check_folder(out)


def test_only_what_changed_is_written_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (first,) = PlaneRendering([BUILD], "frr").into(out)
    before = files(out)
    (again,) = PlaneRendering([BUILD], "frr").into(out)
    assert again == replace(first, kept=first.files)
    (out / "3" / "frr.conf").write_text("hostname mine")
    (out / "5" / "load.sh").unlink()
    (mended,) = PlaneRendering([BUILD], "frr").into(out)
    assert mended.edited == ("3/frr.conf", "5/load.sh")
    assert (files(out), mended.kept) == (before, first.files - 12)
    assert not check_folder(out).damaged
    (out / "3" / "frr.conf").unlink()
    (other,) = PlaneRendering([OTHER], "frr", check=False).into(out)
    assert (other.kept, other.edited) == (0, ("3/frr.conf",))


def test_what_follows_from_something_else_is_written_whole(tmp_path: Path) -> None:
    out, own = tmp_path / "out", tmp_path / "own"
    (own / "frr").mkdir(parents=True)
    (own / "frr" / "sysctl.conf.j2").write_text("# mine")

    def kept(build: Build = BUILD, target: str = "frr", **more: Any) -> int:
        return PlaneRendering([build], target, **more).into(out)[0].kept

    assert (kept(check=False), kept(), kept() > 0) == (0, 0, True)
    assert (kept(options={"version": "10.7"}), kept(), kept() > 0) == (0, 0, True)
    mine = {"templates": own, "check": False}
    assert (kept(**mine), kept(**mine) > 0) == (0, True)
    (own / "frr" / "sysctl.conf.j2").write_text("# mine, and others")
    assert kept(**mine) == 0
    assert (kept(OTHER), kept(OTHER) > 0) == (0, True)
    assert (kept(OTHER, "linux"), kept(OTHER)) == (0, 0)  # both write load.sh
    PlaneRendering([OTHER], "frr", nodes=["3"]).into(out)
    assert kept(OTHER) == 0


def test_a_plane_by_itself_is_rendered_elsewhere_than_among_others(tmp_path: Path) -> None:
    PlaneRendering([OTHER, BUILD], "frr").into(tmp_path / "out")
    (alone,) = PlaneRendering([BUILD], "frr").into(tmp_path / "out")
    PlaneRendering([BUILD], "frr").into(tmp_path / "right")
    assert alone.kept == 0
    assert files(tmp_path / "out") == files(tmp_path / "right")
    swapped = PlaneRendering([OTHER, BUILD], "frr"), PlaneRendering([BUILD, OTHER], "frr")
    assert [[each.kept for each in planes.into(tmp_path / "two")] for planes in swapped] == [
        [0, 0]
    ] * 2


def test_a_build_is_checked_by_its_identity(tmp_path: Path) -> None:
    saved = save(replace(BUILD, identity=""), tmp_path / "build")
    assert check_folder(tmp_path / "build").builds == (saved.identity,)


def test_each_damaged_file_of_a_build_is_named_beside_a_damaged_mark(tmp_path: Path) -> None:
    build = tmp_path / "build"
    save(replace(BUILD, identity=""), build)
    array = next((build / "arrays").iterdir())
    for file in (build / "fabric.json", array, build / VERIFIED):
        file.write_bytes(b"{}")
    said = {Path(problem.file).name for problem in check_folder(build).damaged}
    assert said == {"fabric.json", array.name, VERIFIED}
