"""Folders that are replaced: a user's files are not lost, a kill leaves the old or the new one."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compilers.tables.folders.build_folder import load, put_back
from compilers.tables.folders.folder_contents import identity_in, last_build_place
from compilers.tables.folders.leftover_parts import remove_all_parts
from compilers.tables.folders.replaced_folder import new_build
from compilers.targets.rendering.folder_check import check_folder
from compilers.targets.rendering.rendered_folder import put_rendered, put_texts, rendered_lists
from inventory.problems import InputError
from polarfab import cli

SPEC = "name: lab\ntopology: {{family: polarfly, q: 2}}\nrouting: {{balance: {}}}\n"
CHANGES = ("os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.chmod", "ctypes.dlsym")
"""Events of Python before the file system changes; the last before it calls the C library."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
POLARFAB = (sys.executable, "-m", "polarfab")
HEAD = "ref: refs/heads/main\n"
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two specs and builds; a build and a render of the old one in places, which are repositories.

    The new one is kept beside `place`. In `out` are two targets, and below it another render.
    """
    root = tmp_path_factory.mktemp("folders")
    for name, balance in (("old", "minimal"), ("new", "compact-valiant")):
        (root / f"{name}.yaml").write_text(SPEC.format(balance))
        assert command("compile", root / f"{name}.yaml", "-o", root / name) == 0
    for name in ("new", "old"):
        command("compile", root / f"{name}.yaml", "-o", root / "place")
    for target, folder in (("linux", "out"), ("frr", "out"), ("frr", "out/below")):
        command("render", root / "old", "--target", target, "-o", root / folder)
    for place in ("place", "out"):
        (root / place / ".git").mkdir()
        (root / place / ".git/HEAD").write_text(HEAD)
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "root"))


def command(*words: object) -> int:
    sys.argv = ["polarfab", *map(str, words)]
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line; its exit code and what it says of mistakes."""

    def called(*words: object) -> tuple[int, str]:
        capfd.readouterr()
        return command(*words), capfd.readouterr().err

    return called


@pytest.mark.parametrize("place", ["circle", "circle/below"])
@pytest.mark.parametrize("words", ["compile {}/new.yaml", "render {}/new --target frr"])
def test_links_in_a_circle_are_refused(words, place, root, run):
    (root / "circle").symlink_to("circle")
    code, said = run(*words.format(root).split(), "-o", root / place)
    assert code == 2
    assert str(root / "circle") in said
    assert (root / "circle").is_symlink()


COMMANDS = {
    "compile": "compile {}/new.yaml -o {}/place",
    "undo": "folder {}/place --undo",
    "render": "render {}/new --target frr -o {}/out",
    "one switch": "render {}/new --target frr --node 1 -o {}/out",
}


def words_of(name: str, root: Path) -> list[str]:
    return COMMANDS[name].replace("{}", str(root)).split()


def place_of(name: str, root: Path) -> Path:
    """The folder that a command replaces."""
    return root / ("place" if name in ("compile", "undo") else "out")


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("name", "stranger"),
    [
        *(("compile", "arrays/mine.npy"), ("compile", "mine/"), ("undo", "notes.txt")),
        *(("render", "1/notes"), ("render", "pipe|"), ("one switch", "notes.txt")),
    ],
)
def test_a_strangers_file_is_named_and_nothing_changes(
    root: Path, run: Run, name: str, stranger: str
) -> None:
    words, place = words_of(name, root), place_of(name, root)
    path = place / stranger.strip("/|")
    (path if stranger[-1] == "/" else path.parent).mkdir(parents=True, exist_ok=True)
    if stranger[-1] == "|":
        os.mkfifo(path)
    elif stranger[-1] != "/":
        path.write_text("mine")
    before = contents(root)
    code, said = run(*words)
    assert code == 2
    required = "required only files that polarfab wrote"
    assert f"{path}: {required}" in said or f"{path.parent}: {required}" in said
    assert contents(root) == before
    assert not [*root.glob(".*.polarfab")]


def test_other_targets_and_renders_below_stay(root: Path) -> None:
    command("render", root / "new", "--target", "frr", "-o", root / "out")
    assert set(rendered_lists(root / "out") or ()) == {"frr", "linux"}
    state = check_folder(root / "out")
    builds = {load(root / name).identity for name in ("old", "new")}
    assert (set(state.builds), state.damaged, state.strays) == (builds, (), ())
    assert check_folder(root / "out/below").builds == (load(root / "old").identity,)


def in_child(words: list[str], kill_at: int = 0) -> list[str]:
    """Run a command in a child that is killed before its n-th change of the file system, from 1.

    Returns:
        The changes that it came to, by their first letters in `CHANGES`, `open` for a file.
    """
    kinds = [*CHANGES, "open"]
    done = mmap.mmap(-1, 1 << 16)
    pid = os.fork()
    if not pid:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)

        def hook(event: str, given: tuple[object, ...]) -> None:
            opened = event == "open" and isinstance(given[2], int) and given[2] & WRITES
            if event in CHANGES or (opened and "__pycache__" not in str(given[0])):
                done.write_byte(1 + kinds.index(event))
                if done.tell() == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        os._exit(command(*words))
    _, status = os.waitpid(pid, 0)
    changes = [kinds[number - 1] for number in done[:].rstrip(b"\0")]
    code = os.waitstatus_to_exitcode(status)
    assert code == (-signal.SIGKILL if 0 < kill_at <= len(changes) else 0)
    return changes


def points(changes: list[str], step: int) -> list[int]:
    """The changes where folders are exchanged, and each step-th of the others."""
    numbers = range(1, len(changes) + 1)
    swaps = [n for n in numbers if changes[n - 1] in ("os.rename", "ctypes.dlsym", "os.chmod")][-6:]
    return sorted({*swaps, *(min(n + 1, len(changes)) for n in swaps), *numbers[::step]})


def whole(place: Path) -> tuple[str, ...]:
    """The builds of a folder in which nothing is damaged, and nothing is not ours."""
    state = check_folder(place)
    assert (state.damaged, state.strays, state.verified) in (((), (), True), ((), (), None))
    return tuple(sorted(state.builds))


@pytest.mark.parametrize("step", [200, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_kill_leaves_the_old_folder_or_the_new_one(root: Path, name: str, step: int) -> None:
    """And the next command removes what is left, puts `.git` into its place, and writes the new."""
    words, place = words_of(name, root), place_of(name, root)
    kept = root.with_name("kept")
    shutil.copytree(root, kept)
    old = whole(place)
    changes = in_child(words)
    new = whole(place)
    assert old != new
    states = set()
    for point in points(changes, step):
        shutil.rmtree(root)
        shutil.copytree(kept, root)
        in_child(words, point)
        states.add(state := whole(place))
        assert state in (old, new), point
        if name != "undo":
            assert command(*words) == 0
            assert whole(place) == new
        remove_all_parts(place)
        assert (place / ".git/HEAD").read_text() == HEAD, point
        assert not [*root.glob(".*.polarfab")], point
        assert whole(last_build_place(place) if place.name == "place" else place)
    assert states == {old, new}


def test_a_kill_of_the_removal_leaves_the_repository(root: Path) -> None:
    """A folder that left its place is removed with all in it, but not with the user's `.git`."""
    old = root / ".place.01234567.polarfab"
    (root / "place/.git").rename(root / "git")
    shutil.copytree(root / "place", old)
    (root / "git").rename(old / ".git")
    kept = root.with_name("kept")
    shutil.copytree(root, kept)
    words = ["folder", str(root / "place"), "--clean"]
    for point in range(1, len(in_child(words)) + 1):
        shutil.rmtree(root)
        shutil.copytree(kept, root)
        in_child(words, point)
        assert command(*words) == 0
        assert (root / "place/.git/HEAD").read_text() == HEAD, point
        assert not old.exists()
        assert whole(root / "place")


@pytest.mark.live
@pytest.mark.parametrize("name", ["compile", "undo"])
def test_a_kill_where_folders_cannot_be_exchanged(root: Path, name: str) -> None:
    """Two renames then; strace has the system call fail, and kills at each of the renames."""
    words, place = words_of(name, root), place_of(name, root)
    kept = root.with_name("kept")
    shutil.copytree(root, kept)
    old, states, code = whole(place), set(), -signal.SIGKILL
    for number in range(1, 12):
        if code == 0:
            break
        shutil.rmtree(root)
        shutil.copytree(kept, root)
        code = under_strace(
            ["inject=renameat2:error=EINVAL", f"inject=rename:signal=SIGKILL:when={number}"], words
        ).returncode
        assert command("folder", place, "--clean") == 0
        states.add(whole(place))
        assert (place / ".git/HEAD").read_text() == HEAD
        assert not [path for path in root.glob(".*") if path.name != ".place.last"]
    assert code == 0
    assert len(states) == 2
    assert old in states


def under_strace(injected: list[str], words: list[str]) -> subprocess.CompletedProcess[str]:
    options = [word for one in injected for word in ("-e", one)]
    calls = ",".join(re.findall(r"inject=(\w+):", " ".join(injected)))
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", *options]
    return subprocess.run(
        [*strace, *POLARFAB, *words],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.live
@pytest.mark.parametrize("name", ["compile", "render"])
def test_a_full_disk_leaves_the_old_folder(root: Path, name: str) -> None:
    """A file system of its own that is full but for 32 kB."""
    place = place_of(name, root)
    script = (
        'mount -t tmpfs -o size=8m none "$1/disk" && cp -a "$1/$2" "$1/disk" && shift 2 && '
        'head -c 20m /dev/zero > "$1/fill"; truncate -s -32768 "$1/fill"; disk=$1; shift; '
        '"$@"; code=$?; rm "$disk/fill"; "$PYTHON" -m polarfab folder "$disk/$NAME" || exit 9; '
        'ls -A "$disk"; exit $code'
    )
    (root / "disk").mkdir()
    words = [word.replace(str(place), f"{root}/disk/{place.name}") for word in words_of(name, root)]
    there = [root, place.name, root / "disk"]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *there, *POLARFAB, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHON": sys.executable, "NAME": place.name},
    )
    assert done.returncode == 2, done.stderr
    assert re.search(r"No space left on device|no room", done.stderr), done.stderr
    assert "make room" in done.stderr
    assert f"{root}/disk/{place.name}" in done.stderr
    assert load(root / "old").identity in done.stdout
    assert done.stdout.split()[-1] == place.name, "no part is left"


def test_the_last_proved_build_is_put_back(made: Path, run: Run, tmp_path: Path) -> None:
    place = tmp_path / "b"
    identities = {name: load(made / name).identity for name in ("old", "new")}
    code, said = run("folder", place, "--undo")
    assert (code, "none is kept" in said) == (2, True)
    command("compile", made / "old.yaml", "-o", place)
    command("compile", made / "new.yaml", "-o", place)
    for name in ("old", "new", "old"):
        assert [build.identity for build in put_back(place)] == [identities[name]]
        assert load(place).identity == identities[name]
        assert check_folder(place).verified
    command("compile", made / "old.yaml", "-o", place)
    assert check_folder(place).kept == identities["new"], "the same build is not kept twice"
    command("compile", made / "new.yaml", "-o", place, "--quick")
    (place / "verified.json").unlink(missing_ok=True)
    command("compile", made / "old.yaml", "-o", place)
    assert check_folder(place).kept == identities["old"], "one that is not proved is not kept"


def test_a_damaged_build_is_not_put_back(root: Path, run: Run) -> None:
    (root / ".place.last/fabric.json").write_text("{}")
    before = contents(root)
    code, said = run("folder", root / "place", "--undo")
    assert (code, "fabric.json: required the file as it was compiled" in said) == (2, True)
    assert contents(root) == before


def test_what_is_where_the_last_build_is_kept_stays(root: Path, run: Run) -> None:
    (root / ".place.last/notes").write_text("mine")
    before = contents(root)
    for words in (words_of("compile", root), words_of("undo", root)):
        code, said = run(*words)
        assert (code, f"{root}/.place.last/notes: required only" in said) == (2, True)
        assert contents(root) == before


def test_what_comes_to_a_place_meanwhile_stays(made: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"

    def write_while_notes_come() -> None:
        with new_build(place) as new:
            shutil.copytree(made / "old", new, dirs_exist_ok=True)
            place.mkdir()
            (place / "notes").write_text("mine")

    with pytest.raises(InputError, match="a folder with other files in it"):
        write_while_notes_come()
    assert contents(tmp_path) == {"place/notes": b"mine"}
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="given a file"), new_build(tmp_path / "file"):
        pass
    assert sorted(contents(tmp_path)) == ["file", "place/notes"]


def test_two_renders_at_once_keep_the_files_of_both(tmp_path: Path) -> None:
    def fill(new: Path) -> None:
        put_texts(tmp_path / "out", "other", "b", {"y": "other"})
        (new / "x").write_text("new")

    put_rendered(tmp_path / "out", "one", {"": "b"}, fill)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {".polarfab.json", "x", "y"}
    assert {*(rendered_lists(tmp_path / "out") or {})} == {"one", "other"}


def test_two_builds_at_once_are_one_and_the_one_before(made: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    with new_build(place) as new:
        command("compile", made / "new.yaml", "-o", place)
        shutil.copytree(made / "old", new, dirs_exist_ok=True)
    builds = identity_in(place), identity_in(last_build_place(place))
    assert builds == (identity_in(made / "old"), identity_in(made / "new"))


def test_what_a_running_process_writes_is_not_removed(made: Path, tmp_path: Path) -> None:
    with new_build(tmp_path / "place") as new:
        assert remove_all_parts(tmp_path) == []
        shutil.copytree(made / "old", new, dirs_exist_ok=True)
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


@pytest.mark.parametrize(
    "name", [".place.polarfab", "place.0123abcd.polarfab", ".place.0123abcx.polarfab", ".place.new"]
)
def test_files_of_users_are_not_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    assert remove_all_parts(tmp_path / "place") == []
    assert remove_all_parts(tmp_path) == []
    assert (tmp_path / name).read_text() == "mine"


def test_a_build_that_is_replaced_while_it_is_read_is_one_of_the_two(root: Path) -> None:
    identities = {load(root / name).identity for name in ("old", "new")}
    pid = os.fork()
    if not pid:
        for _ in range(20):
            put_back(root / "place")
        os._exit(0)
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        assert load(root / "place").identity in identities
