"""Where verbs write: devices stay devices, files and folders that are no place of ours stay."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compilers.tables.folders.written_file import put_file
from inventory.problems import InputError
from polarfab import cli
from tests.polarfab.makers import command_line

FABRIC = "name: lab\ntopology: {family: polarfly, q: 3}\nhosts: {per_node: 1}\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("door")
    (root / "f.yaml").write_text(FABRIC.replace("hosts: {per_node: 1}\n", ""))
    assert command_line()("compile", root / "f.yaml", "-o", root / "b")[0] == 0
    return root


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def called(*words: object) -> tuple[int, str, str]:
        sys.argv = ["polarfab", *map(str, words)]
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0), *capfd.readouterr()

    return called


def test_a_link_to_standard_output_is_written_through(made: Path, tmp_path: Path) -> None:
    """As /dev/stdout is such a link: never the machine's own in a test."""
    link, file = tmp_path / "stdout", tmp_path / "file"
    link.symlink_to("/proc/self/fd/1")
    file.write_text("kept\n")
    assert command_line()("cables", made / "b", "--format", "csv", "-o", link, out=file)[0] == 0
    assert link.is_symlink()
    lines = file.read_text().splitlines()
    assert lines[0] == "kept"
    assert len(lines) == 1 + 25


def test_a_hyphen_is_standard_output(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    polarfab = command_line()
    cables = "cables", made / "b", "--format", "csv"
    assert polarfab(*cables, "-o", "-") == polarfab(*cables)
    polarfab("inventory", "export", made / "f.yaml", "-o", tmp_path / "netbox", "--quiet")
    words = ("inventory", "import", tmp_path / "netbox", "-o", "-")
    code, out, err = polarfab(*words)  # it is not read back from standard input, which is empty
    assert (code, out[:11], err) == (0, "node_types:", "")
    assert polarfab(*words, "--json")[0] == 2
    shutil.rmtree(tmp_path / "netbox")
    code, _, err = polarfab("render", made / "b", "--target", "frr", "-o", "-")
    assert code == 2
    assert "given -, standard output" in err
    assert not list(tmp_path.iterdir())


def test_a_device_stays_one(tmp_path: Path) -> None:
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    assert put_file(null, [b"content"]) == 7
    assert null.is_symlink()


def test_a_pipe_is_written_to() -> None:
    reading, writing = os.pipe()
    assert put_file(Path(f"/dev/fd/{writing}"), [b"a,b\n"]) == 4
    assert os.read(reading, 10) == b"a,b\n"
    os.close(reading)
    os.close(writing)


def test_a_link_in_the_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root")
    (tmp_path / "out").symlink_to("passwd")
    put_file(tmp_path / "out", [b"cables"])
    assert (tmp_path / "passwd").read_text() == "root"
    assert (tmp_path / "out").read_text() == "cables"


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "cables.csv"
    put_file(file, [b"old"])

    def pieces() -> Iterator[bytes]:
        yield b"half of the new"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match="No space left"):
        put_file(file, pieces())
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["cables.csv"]


@pytest.mark.parametrize(
    ("place", "given"),
    [
        ("{}/none/cables.csv", "no folder {}/none"),
        ("{}/file/cables.csv", "{}/file, which is no folder"),
        ("/proc/cables.csv", "/proc, where nothing can be made"),
    ],
)
def test_why_nothing_can_be_written_in_a_place(tmp_path: Path, place: str, given: str) -> None:
    (tmp_path / "file").touch()
    said = re.escape(given.format(tmp_path))
    with pytest.raises(InputError, match=rf"a file that can be written, given {said}; name"):
        put_file(Path(place.format(tmp_path)), [b"content"])


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "cables.csv").write_text("old")
    (tmp_path / "cables.csv").chmod(0o640)
    put_file(tmp_path / "cables.csv", [b"new"])
    assert stat.S_IMODE((tmp_path / "cables.csv").stat().st_mode) == 0o640


def test_neither_inside_the_other(made: Path, run: Run, tmp_path: Path) -> None:
    build, out = tmp_path / "b", tmp_path / "out"
    run("compile", made / "f.yaml", "-o", build)
    run("render", build, "--target", "frr", "-o", out)
    for words, said in (
        (("render", build, "--target", "frr", "-o", build / "out"), f"inside a build, {build}"),
        (("compile", made / "f.yaml", "-o", build / "c"), f"inside a build, {build}"),
        (("compile", made / "f.yaml", "-o", out / "c"), "inside a folder of files made from"),
        (("render", build, "--target", "frr", "-o", tmp_path), f"{tmp_path}/b: required only"),
    ):
        code, _, err = run(*words)
        assert code == 2
        assert said in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "out"]
    assert {path.name for path in build.iterdir()} == {
        *("arrays", "fabric.json", "manifest.json", "manifest.sha256", "verified.json")
    }


def test_a_file_of_a_build_or_a_render_is_not_replaced(
    made: Path, run: Run, tmp_path: Path
) -> None:
    build, out = tmp_path / "b", tmp_path / "out"
    run("compile", made / "f.yaml", "-o", build)
    run("render", build, "--target", "frr", "-o", out)
    listed = (build / "manifest.json", build / "arrays/route_egress.npy", out / ".polarfab.json")
    for file in (*listed, next(out.glob("*/frr.conf"))):
        before = file.read_bytes()
        code, _, err = run("cables", build, "--format", "csv", "-o", file)
        assert (code, "outside builds and what is made from them" in err) == (2, True)
        assert file.read_bytes() == before


def test_a_file_in_a_build_or_a_render_is_refused_when_it_is_written(
    made: Path, run: Run, tmp_path: Path
) -> None:
    """Later, the next compile or render there would refuse it."""
    build, out = tmp_path / "b", tmp_path / "out"
    run("compile", made / "f.yaml", "-o", build)
    run("render", build, "--target", "frr", "-o", out)
    for folder, kind in ((build, "a build"), (out, "a folder of files made from a build")):
        code, _, err = run("cables", build, "--format", "csv", "-o", folder / "cables.csv")
        assert (code, f"given one inside {kind}, {folder}" in err) == (2, True), err
        assert "name another one" in err
    assert run("compile", made / "f.yaml", "-o", build)[0] == 0
    (build / "one").touch()
    (build / "other").touch()
    code, _, err = run("compile", made / "f.yaml", "-o", build)
    assert code == 2
    assert [line.split(":")[1].strip() for line in err.splitlines()] == [
        f"{build}/one",
        f"{build}/other",
    ]


def test_a_read_only_file_is_not_replaced(made: Path, run: Run, tmp_path: Path) -> None:
    """As root too, who may write it: its owner took the permission away."""
    (tmp_path / "cables.csv").write_text("mine")
    (tmp_path / "cables.csv").chmod(0o444)
    code, _, err = run("cables", made / "b", "--format", "csv", "-o", tmp_path / "cables.csv")
    assert (code, "given a read-only file" in err) == (2, True), err
    assert (tmp_path / "cables.csv").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["cables.csv"]


def test_the_working_directory_is_not_replaced(
    made: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what it is in: the shell would be in none."""
    (tmp_path / "above/here").mkdir(parents=True)
    before = (tmp_path / "above").stat().st_ino
    monkeypatch.chdir(tmp_path / "above/here")
    for place, said in (
        ("..", "the working directory is in"),
        (".", "which is the working directory"),
    ):
        code, _, err = run("render", made / "b", "--target", "frr", "-o", place)
        assert (code, said in err) == (2, True), err
        code, _, err = run("compile", made / "f.yaml", "-o", place)
        assert code == 2
    assert (tmp_path / "above").stat().st_ino == before


def test_a_manifest_of_another_program_is_no_build(made: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "web extension"}')
    code, _, err = run("compile", made / "f.yaml", "-o", tmp_path)
    assert code == 2
    assert "a folder with other files in it" in err
    assert run("compile", made / "f.yaml", "-o", tmp_path / "b")[0] == 0


def test_a_refused_render_leaves_no_folder(made: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "templates/frr").mkdir(parents=True)
    (tmp_path / "templates/frr/frr.conf.j2").write_text("{{ no_such }}")
    words = ("--templates", tmp_path / "templates", "-o", tmp_path / "new/deep/out")
    assert run("render", made / "b", "--target", "frr", *words)[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["templates"]


def test_an_edited_manifest_is_refused(made: Path, run: Run, tmp_path: Path) -> None:
    run("compile", made / "f.yaml", "-o", tmp_path / "b")
    manifest = tmp_path / "b/manifest.json"
    manifest.write_text(manifest.read_text().replace('"lab"', '"lob"'))
    for words in ("cables", "explain {} 0 1", "hosts paths {} --format linux"):
        there = str(tmp_path / "b")
        called = words.format(there) if "{}" in words else f"{words} {there}"
        code, _, err = run(*called.split())
        assert (code, "manifest.json" in err) == (2, True), words
    for verb in ("throughput", "plan"):
        words = ["--from", made / "b"] if verb == "plan" else []
        assert run(verb, tmp_path / "b", *words)[0] == 2, verb
    (tmp_path / "b/manifest.sha256").unlink()
    code, _, err = run("cables", tmp_path / "b")
    assert (code, "manifest.sha256: required the file as it was compiled" in err) == (2, True)


MARKS = {
    "more proved": lambda text: text.replace('"channels": false', '"channels": true'),
    "empty": lambda _: "",
    "of another build": lambda text: json.dumps({**json.loads(text), "build": "0" * 16}),
}


@pytest.mark.parametrize("harm", MARKS)
def test_a_damaged_mark_is_none(made: Path, run: Run, tmp_path: Path, harm: str) -> None:
    """Every verb that relies on the mark takes the build as one that is not verified."""
    build, out = tmp_path / "b", ["-o", tmp_path / "out"]
    shutil.copytree(made / "b", build)
    proved = "proved of every pair"
    assert proved in run("explain", build, "0", "1")[1]
    mark = build / "verified.json"
    text = MARKS[harm](mark.read_text())
    assert text != mark.read_text()
    mark.write_text(text)
    for words in (
        ["render", build, "--target", "frr", *out],
        ["controller", build],
        ["emulate", build, "--engine", "model"],
        ["plan", build, "--from", made / "b"],
        ["rehearse", build, "--from", made / "b", "--engine", "model"],
    ):
        code, _, err = run(*words)
        assert (code, "a build that has passed polarfab verify" in err) == (2, True), (words, err)
    code, said, _ = run("explain", build, "0", "1")
    assert (code, proved in said) == (0, False)
    code, _, err = run("folder", build)
    assert (code, "verified.json" in err) == (1, True)
