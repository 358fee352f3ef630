"""What verbs write: devices stay devices, and what is not ours in a folder stays or is named."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compilers.tables.folders import artefact
from compilers.tables.folders.artefact import put_file, put_folder
from compilers.tables.folders.generations import fabric_in, last, owned, put
from compilers.targets.rendering.rendered_folder import put_rendered, put_texts, rendered_lists
from inventory.problems import InputError
from polarfab import cli

FABRIC = "name: lab\ntopology: {family: polarfly, q: 3}\nhosts: {per_node: 1}\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("door")
    (root / "f.yaml").write_text(FABRIC.replace("hosts: {per_node: 1}\n", ""))
    polarfab("compile", root / "f.yaml", "-o", root / "b")
    return root


def polarfab(
    *words: object, behind: str = "", good: bool = True
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polarfab", *map(str, words)]
    if behind:
        command = ["sh", "-c", f'"$@" {behind}', "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not good or done.returncode == 0, done.stderr
    return done


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def called(*words: object) -> tuple[int, str, str]:
        sys.argv = ["polarfab", *map(str, words)]
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0), *capfd.readouterr()

    return called


@pytest.mark.parametrize("append", [False, True])
def test_a_link_to_standard_output_is_written_through(
    made: Path, tmp_path: Path, append: bool
) -> None:
    """As /dev/stdout is such a link: never the machine's own in a test."""
    link, file = tmp_path / "stdout", tmp_path / "file"
    link.symlink_to("/proc/self/fd/1")
    file.write_text("kept\n")
    sign = ">>" if append else ">"
    polarfab("cables", made / "b", "--format", "csv", "-o", link, behind=f"{sign} {file}")
    assert link.is_symlink()
    lines = file.read_text().splitlines()
    assert (lines[0] == "kept") == append
    assert len(lines) == 25 + append


def test_a_hyphen_is_standard_output(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = polarfab("cables", made / "b", "--format", "csv", "-o", "-")
    assert said.stdout == polarfab("cables", made / "b", "--format", "csv").stdout
    assert said.stderr == ""
    polarfab("inventory", "export", made / "f.yaml", "-o", tmp_path / "netbox", "--quiet")
    words = ("inventory", "import", tmp_path / "netbox", "-o", "-")
    given = polarfab(*words, behind="< /dev/null")  # it is not read back from standard input
    assert (given.stdout[:11], given.stderr) == ("node_types:", "")
    assert polarfab(*words, "--json", good=False).returncode == 2
    shutil.rmtree(tmp_path / "netbox")
    folder = polarfab("render", made / "b", "--target", "frr", "-o", "-", good=False)
    assert folder.returncode == 2
    assert "given -, standard output" in folder.stderr
    assert not list(tmp_path.iterdir())


def test_a_device_stays_one(tmp_path: Path) -> None:
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    assert put_file(null, [b"content"]) == 7
    assert null.is_symlink()


def test_nothing_reads_the_pipe(made: Path) -> None:
    done = polarfab("cables", made / "b", "--format", "csv", "-o", "-", behind="| true", good=False)
    assert "Traceback" not in done.stderr


def test_a_build_keeps_what_is_not_its_own(made: Path, run: Run, tmp_path: Path) -> None:
    build, other = tmp_path / "b", tmp_path / "g.yaml"
    other.write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
    run("compile", made / "f.yaml", "-o", build)
    (build / "notes.txt").write_text("mine")
    (build / "notes.txt").chmod(0o604)
    (build / "empty").mkdir(mode=0o705)
    (build / "link").symlink_to("notes.txt")
    (build / "mine/deep").mkdir(parents=True)
    (build / "mine/deep/file").write_text("too")
    os.utime(build / "mine", (1, 1))
    (build / "arrays/mine.npy").write_text("no array")
    inode = (build / "notes.txt").stat().st_ino
    assert run("compile", other, "-o", build)[0] == 0
    for _ in range(2):
        assert (build / "notes.txt").read_text() == "mine"
        assert stat.S_IMODE((build / "notes.txt").stat().st_mode) == 0o604
        assert stat.S_IMODE((build / "empty").stat().st_mode) == 0o705
        assert (build / "link").is_symlink()
        assert (build / "mine").stat().st_mtime == 1
        assert (build / "mine/deep/file").read_text() == "too"
        assert (build / "arrays/mine.npy").read_text() == "no array"
        assert (build / "notes.txt").stat().st_ino == inode
        assert not (tmp_path / ".b.last/notes.txt").exists()
        assert run("folder", "rollback", build)[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.last", "b", "g.yaml"]


def test_a_pipe_in_a_build_stays(made: Path, run: Run, tmp_path: Path) -> None:
    run("compile", made / "f.yaml", "-o", tmp_path / "b")
    os.mkfifo(tmp_path / "b/pipe")
    assert run("compile", made / "f.yaml", "-o", tmp_path / "b")[0] == 0
    assert (tmp_path / "b/pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["render", "BUILD", "--target", "frr", "-o", "OUT"], "0/frr.conf"),
        (["inventory", "export", "FABRIC", "-o", "OUT"], "devices.csv"),
        (["export", "BUILD", "--format", "booksim", "-o", "OUT"], "tables.txt"),
    ],
)
def test_files_of_others_are_not_overwritten(
    made: Path, run: Run, tmp_path: Path, words: list[str], name: str
) -> None:
    out = tmp_path / "out"
    places = {"BUILD": made / "b", "FABRIC": made / "f.yaml", "OUT": out}
    words = [str(places.get(word, word)) for word in words]
    assert run(*words)[0] == 0
    assert run(*words)[0] == 0, "our own are replaced"
    name = (
        name
        if (out / name).exists()
        else sorted(p.name for p in out.iterdir() if p.name[0] != ".")[0]
    )
    (tmp_path / "out").rename(tmp_path / "before")
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine")
    code, _, err = run(*words)
    assert code == 2
    assert f"{out}/{name}: required no file of another's by this name" in err
    assert (out / name).read_text() == "mine"
    assert [path.name for path in out.iterdir()] == [name.split("/")[0]]


def test_folders_of_others_keep_their_looks(made: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "mine").mkdir(parents=True)
    (out / "mine/file").write_text("x")
    (out / "mine").chmod(0o700)
    (out / "0").mkdir(mode=0o700)
    out.chmod(0o750)
    os.utime(out / "mine", (1, 1))
    if os.geteuid() == 0:
        os.chown(out / "mine", 12345, 12345)
        os.chown(out, 12345, 12345)
    before = [(out / name).stat() for name in (".", "mine", "0")]
    assert run("render", made / "b", "--target", "frr", "-o", out)[0] == 0
    after = [(out / name).stat() for name in (".", "mine", "0")]
    assert [(s.st_mode, s.st_uid, s.st_gid) for s in before] == [
        (s.st_mode, s.st_uid, s.st_gid) for s in after
    ]
    assert after[1].st_mtime == 1


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
        (("render", build, "--target", "frr", "-o", tmp_path), "one with b"),
    ):
        code, _, err = run(*words)
        assert code == 2
        assert said in err
    (tmp_path / "deep").mkdir()
    shutil.copytree(made / "b", tmp_path / "deep/b")
    shutil.move(build, tmp_path / "deep/c")
    code, _, err = run("render", made / "b", "--target", "frr", "-o", tmp_path)
    assert (code, "one with deep/b" in err) == (2, True)
    shutil.move(tmp_path / "deep/c", build)
    shutil.rmtree(tmp_path / "deep")
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
        assert (code, "no part of a build or render" in err) == (2, True)
        assert file.read_bytes() == before
    assert run("cables", build, "--format", "csv", "-o", build / "cables.csv")[0] == 0


def test_a_read_only_file_is_not_replaced(made: Path, run: Run, tmp_path: Path) -> None:
    """As root too, who may write it: its owner took the permission away."""
    (tmp_path / "cables.csv").write_text("mine")
    (tmp_path / "cables.csv").chmod(0o444)
    code, _, err = run("cables", made / "b", "--format", "csv", "-o", tmp_path / "cables.csv")
    assert (code, "given a read-only file" in err) == (2, True), err
    assert (tmp_path / "cables.csv").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["cables.csv"]


def test_folders_that_others_share_are_not_replaced(
    made: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /tmp is, and the working directory and what it is in: the shell would be in none."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    (tmp_path / "above/here").mkdir(parents=True)
    before = [(tmp_path / name).stat().st_ino for name in ("shared", "above")]
    monkeypatch.chdir(tmp_path / "above/here")
    for place, said in (
        ("../../shared", "which others share"),
        ("..", "the working directory is in"),
        (".", "which is the working directory"),
    ):
        code, _, err = run("render", made / "b", "--target", "frr", "-o", place)
        assert (code, said in err) == (2, True), err
        code, _, err = run("compile", made / "f.yaml", "-o", place)
        assert code == 2
    assert [(tmp_path / name).stat().st_ino for name in ("shared", "above")] == before


def test_a_manifest_of_another_program_is_no_build(made: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "web extension"}')
    code, _, err = run("compile", made / "f.yaml", "-o", tmp_path)
    assert code == 2
    assert "a folder with other files in it" in err
    assert run("compile", made / "f.yaml", "-o", tmp_path / "b")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ["compile", "FABRIC", "-o", ""],
        ["render", "BUILD", "--target", "frr", "-o", ""],
        ["cables", "BUILD", "--format", "csv", "-o", ""],
        ["export", "BUILD", "--format", "booksim", "-o", ""],
        ["verify", ""],
    ],
)
def test_an_empty_word_is_no_place(
    made: Path, run: Run, tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"BUILD": made / "b", "FABRIC": made / "f.yaml"}
    code, _, err = run(*(places.get(word, word) for word in words))
    assert code == 2
    assert "given an empty word; is a variable not set?" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "b", "--format", ""], "given an empty word"),
        (["verify", "b", "--method", ""], "given an empty word"),
        (["analyse", ""], "given an empty word"),
        (["export", ""], "given an empty word"),
        (["inventory", "export", ""], "given an empty word"),
        (["expand", "", "--from", "fan:1"], "given an empty word"),
        (["analyse", "polarfly", "--q", "2", "--what", ""], "--what: required a value, given an"),
        (["verify", "b", "--scheduler", ""], "--scheduler: required a value, given an empty"),
        (["controller", "b", "--http", ""], "--http: required a value, given an empty word"),
        (["simulate", "b", "--trace", "."], "--trace: required a file that is there, given .;"),
        (["simulate", "b", "--fail"], "--fail: required a value, given none; --help"),
        (["compile", "f", "-o"], "-o: required a value, given none; --help shows what it takes"),
        (["compile", "f", "--quiet", "--verbose"], "contradict each other"),
    ],
)
def test_words_that_are_no_value(run: Run, words: list[str], said: str) -> None:
    code, _, err = run(*words)
    assert code == 2
    assert said in err


def test_a_folder_is_not_replaced_by_an_inventory(made: Path, run: Run, tmp_path: Path) -> None:
    run("inventory", "export", made / "f.yaml", "-o", tmp_path / "netbox")
    code, _, err = run("inventory", "import", tmp_path / "netbox", "-o", tmp_path)
    assert code == 2
    assert "given a folder" in err


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
    "edited": lambda text: text.replace("true", "false", 1),
    "more proved": lambda text: text.replace('"channels": false', '"channels": true'),
    "without its digest": lambda text: json.dumps({**json.loads(text), "digest": None}),
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda _: "",
    "another document": lambda _: "[[]]",
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
    code, _, err = run("folder", "fsck", build)
    assert (code, "verified.json" in err) == (1, True)


def test_a_flush_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the rename the new file is there, and the message says so."""

    def full(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(artefact, "flush", full)
    with pytest.raises(InputError, match="the new one is in its place, but Input/output error"):
        put_file(tmp_path / "file", [b"new"])
    assert (tmp_path / "file").read_text() == "new"


@pytest.mark.live
def test_a_bind_mount_in_a_build_stays(made: Path, tmp_path: Path) -> None:
    """In a mount namespace of its own; the mount is of the same file system."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")
    polarfab("compile", made / "f.yaml", "-o", tmp_path / "b")
    (tmp_path / "b/m").mkdir()
    script = 'mount --bind "$1/mine" "$1/b/m" && shift && exec "$@"'
    words = [sys.executable, "-m", "polarfab", "compile", made / "f.yaml", "-o", tmp_path / "b"]
    command = ["unshare", "--mount", "sh", "-c", script, "sh", tmp_path, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"with a mount at {tmp_path}/b/m in it" in done.stderr
    assert (tmp_path / "mine/file").read_text() == "mine"


def test_what_comes_to_a_place_meanwhile_stays(tmp_path: Path) -> None:
    def beside_notes(new: Path) -> None:
        (new / "file").write_text("new")
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "notes").write_text("mine")

    put_folder(tmp_path / "folder", beside_notes, owned)
    assert (tmp_path / "folder" / "notes").read_text() == "mine"
    place = tmp_path / "file"
    with pytest.raises(InputError, match="Not a directory"):
        put_folder(place, lambda _: place.write_text("mine"), owned)
    assert place.read_text() == "mine"


def test_two_renders_at_once_keep_the_files_of_both(tmp_path: Path) -> None:
    def fill(new: Path) -> None:
        put_texts(tmp_path, "other", "b", {"y": "other"})
        (new / "x").write_text("new")

    put_rendered(tmp_path, "one", {"": "b"}, fill)
    assert {path.name for path in tmp_path.iterdir()} == {".polarfab.json", "x", "y"}
    assert {*(rendered_lists(tmp_path) or {})} == {"one", "other"}


def test_two_builds_at_once_are_one_and_the_one_before(
    made: Path, run: Run, tmp_path: Path
) -> None:
    spec, place = tmp_path / "g.yaml", tmp_path / "new"
    spec.write_text("name: g\ntopology: {family: polarfly, q: 2}\n")

    def fill(new: Path) -> None:
        run("compile", spec, "-o", place)
        shutil.copytree(made / "b", new, dirs_exist_ok=True)

    put(place, fill)
    assert fabric_in(last(place)) == "g"


def test_what_is_in_the_place_of_the_last_build_stays(made: Path, run: Run, tmp_path: Path) -> None:
    place, spec = tmp_path / "b", tmp_path / "g.yaml"
    spec.write_text("name: g\ntopology: {family: polarfly, q: 2}\n")
    shutil.copytree(made / "b", place)
    last(place).mkdir()
    (last(place) / "notes").write_text("mine")
    code, _, err = run("compile", spec, "-o", place)
    assert code == 2
    assert f"{last(place)}/notes" in "".join(err.split())
    assert (last(place) / "notes").read_text() == "mine"
    assert fabric_in(place) != "g"
