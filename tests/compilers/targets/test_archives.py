"""Archives of rendered files: the same files as in a folder, however many processes make them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from compilers.readers.emitted_report import EmittedWrongError
from compilers.tables.folders.build_folder import identified
from compilers.targets.rendering import tar_pieces
from compilers.targets.rendering.emitted_files import check_planes
from compilers.targets.rendering.folder_check import check_folder
from compilers.targets.rendering.plane_rendering import PlaneRendering
from compilers.workers import local_processes
from compilers.workers.shards import THIS_PROCESS, ThisProcess
from inventory.problems import InputError
from tests.compilers.routed import routed

BUILD = identified(routed(q=3))


class Remote(ThisProcess):
    """Workers that send what they make."""

    remote = True


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize("form", tar_pieces.FORMS)
def test_an_archive_holds_what_a_folder_does(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = PlaneRendering([BUILD], "frr").into(tmp_path / "folder")
    alone = tmp_path / f"alone{form}"
    (done,) = PlaneRendering([BUILD], "frr", workers=THIS_PROCESS).into(alone)
    assert (done.files, done.bytes, done.checked) == (folder.files, folder.bytes, True)
    monkeypatch.setattr(local_processes.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(local_processes, "LEAST_SWITCHES", 1)
    both = tmp_path / f"both{form}"
    PlaneRendering([BUILD], "frr").into(both)
    assert both.read_bytes() == alone.read_bytes()
    if form == ".tar.zst":
        import zstandard

        with alone.open("rb") as stream, (tmp_path / "a.tar").open("wb") as plain:
            zstandard.ZstdDecompressor().copy_stream(stream, plain)
        alone = tmp_path / "a.tar"
    with tarfile.open(alone) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    assert files(tmp_path / "out") == files(tmp_path / "folder")
    assert not check_folder(tmp_path / "out").damaged


def test_planes_are_folders_of_an_archive(tmp_path: Path) -> None:
    planes = [BUILD, identified(replace(BUILD, name="other"))]
    PlaneRendering(planes, "linux").into(tmp_path / "folder")
    PlaneRendering(planes, "linux").into(tmp_path / "a.tar.gz")
    subprocess.run(["tar", "-xzf", tmp_path / "a.tar.gz", "-C", tmp_path, "plane-2"], check=True)
    assert files(tmp_path / "plane-2") == files(tmp_path / "folder" / "plane-2")


@pytest.mark.parametrize("target", ["sonic", "eos"])
def test_what_other_machines_send_is_what_this_one_writes(target: str, tmp_path: Path) -> None:
    here, there = (PlaneRendering([BUILD], target, workers=w) for w in (THIS_PROCESS, Remote()))
    (one,), (other,) = here.into(tmp_path / "here"), there.into(tmp_path / "there")
    assert files(tmp_path / "here") == files(tmp_path / "there")
    assert replace(one, folder=other.folder) == other


@pytest.mark.parametrize("place", ["there", "there.tar.gz"])
def test_wrong_files_take_no_place_and_are_named_as_there(place: str, tmp_path: Path) -> None:
    own = tmp_path / "own" / "frr"
    own.mkdir(parents=True)
    (own / "sysctl.conf.j2").write_text("net.ipv4.ip_forward = 0\n")
    with pytest.raises(EmittedWrongError) as error:
        PlaneRendering([BUILD], "frr", own.parent, workers=Remote()).into(tmp_path / place)
    assert error.value.report.examples[0].file.startswith(str(tmp_path / place / "0"))
    assert not (tmp_path / place).exists()


def test_an_archive_of_files_that_only_all_together_can_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="render into a folder"):
        PlaneRendering([BUILD], "opensm").into(tmp_path / "a.tar")
    with pytest.raises(InputError, match="--no-check"):
        PlaneRendering([BUILD], "srv6").into(tmp_path / "a.tar")
    assert not (tmp_path / "a.tar").exists()


def test_other_archives_are_not_taken_for_folders() -> None:
    with pytest.raises(
        InputError, match=r"-o: required a folder, or a name that ends in \.tar, .*given a\.zip"
    ):
        tar_pieces.archive_form(Path("a.zip"))


def test_without_zstandard_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match=r"polarfab\[archives\]"):
        tar_pieces.archive_form(Path("a.tar.zst"))


def test_other_templates_on_another_machine_are_refused(tmp_path: Path) -> None:
    own = tmp_path / "frr" / "sysctl.conf.j2"
    own.parent.mkdir()
    own.write_text("# as here\n")
    switches = PlaneRendering([BUILD], "frr", tmp_path)._switches("", BUILD, ".tar", None)
    own.write_text("# others\n")
    with pytest.raises(InputError, match="templates of this run") as error:
        switches.shards(BUILD)
    assert str(tmp_path) in str(error.value)


def test_an_archive_is_to_be_unpacked_before_it_is_checked(tmp_path: Path) -> None:
    archive = tmp_path / "configs.tar.gz"
    PlaneRendering((BUILD,), "frr").into(archive)
    for check in (check_folder, lambda place: check_planes((BUILD,), place)):
        with pytest.raises(InputError, match=f"given an archive; .*tar -xf {archive} -C DIR"):
            check(archive)
    (tmp_path / "DIR").mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", tmp_path / "DIR"], check=True)
    assert check_planes((BUILD,), tmp_path / "DIR")[0].passed
