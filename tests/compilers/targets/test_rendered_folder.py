"""Rendered folders: exchanged whole, with digests, others' files left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from compilers.targets.folder_check import check_folder
from compilers.targets.plane_rendering import render_planes
from compilers.targets.rendered_folder import RENDERED
from inventory.problems import InputError
from tests.compilers.routed import routed

BUILD = replace(routed(q=2), identity="0123456789abcdef")
OTHER = replace(BUILD, identity="fedcba9876543210")


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != RENDERED)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_a_render_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    render_planes([BUILD], "frr", out)
    before = files(out)
    (out / "0" / "notes.txt").write_text("the user's")
    names = tuple(f"n{v}" for v in range(7))
    other = replace(OTHER, wiring=replace(OTHER.wiring, names=names))
    render_planes([other], "frr", out)
    assert {name.split("/")[0] for name in files(out)} == {*names, "0"}
    assert {name for name in files(out) if name.startswith("0/")} == {"0/notes.txt"}
    assert len(files(out)) == len(before) + 1
    state = check_folder(out)
    assert (state.kind, state.builds, state.strays) == (
        "render",
        (OTHER.identity,),
        ("0/notes.txt",),
    )
    assert (state.files, state.damaged) == (len(before), ())


def test_another_target_and_renders_below_stay(tmp_path: Path) -> None:
    out = tmp_path / "lab"
    render_planes([BUILD], "frr", out / "frr")
    render_planes([BUILD], "containerlab", out, options={"system": "frr"})
    render_planes([BUILD], "linux", out)
    before = files(out)
    render_planes([OTHER], "linux", out)
    assert files(out).keys() == before.keys()
    for folder in (out, out / "frr"):
        assert (check_folder(folder).damaged, check_folder(folder).strays) == ((), ())
    assert check_folder(out).builds == (BUILD.identity, OTHER.identity)


def test_one_switch_of_a_render(tmp_path: Path) -> None:
    out = tmp_path / "out"
    render_planes([BUILD], "frr", out)
    before = files(out)
    render_planes([OTHER], "frr", out, nodes=["3"])
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
        render_planes([BUILD], "frr", out)
    (out / RENDERED).unlink()
    render_planes([BUILD], "frr", out)
    assert not list(system.iterdir())
    assert not (tmp_path / "passwd").exists()
    assert (out / "0" / "frr.conf").is_file()


def test_damage_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out"
    render_planes([BUILD], "frr", out)
    (out / "0" / "frr.conf").write_text("!")
    (out / "1" / "frr.conf").unlink()
    (out / "2" / "frr.conf").rename(tmp_path / "frr.conf")
    (out / "2" / "frr.conf").symlink_to(tmp_path / "frr.conf")
    said = {Path(p.file).parent.name: p.given for p in check_folder(out).damaged}
    assert said == {"0": "a changed file", "1": "no file", "2": "a link"}
    (out / RENDERED).write_text(json.dumps({"format": 1, "targets": {"frr": []}}))
    with pytest.raises(InputError, match="a damaged file"):
        check_folder(out)
