"""What the machine refuses, and build folders that are damaged: one message, no bug report."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from polarfab import cli
from tests.polarfab.makers import command_line

POLARFAB = [sys.executable, "-m", "polarfab"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    assert command_line()("compile", folder / "fabric.yaml", "-o", folder / "build")[0] == 0
    return folder


@pytest.fixture
def build(compiled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compiled, tmp_path / "copy")) / "build"


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Run the command line in this process; gives exit code and stderr."""

    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["polarfab", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0), capfd.readouterr().err

    return run


def test_a_full_disk_behind_stdout(build: Path) -> None:
    for words in (("export", "polarfly", "--q", 31), ("explain", build, 0, 5)):
        code, _, err = command_line()(*words, out=Path("/dev/full"))
        said = "error: standard output cannot be written: No space left on device\n"
        assert (code, err) == (2, said)


def test_no_stdout_at_all() -> None:
    words = " ".join([*POLARFAB, "export", "polarfly", "--q", "3"])
    run = subprocess.run(["sh", "-c", f"{words} >&-"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_memory_that_ends_all_the_same(tmp_path: Path) -> None:
    """The bound is low: what the limit then refuses is one message, too."""
    low = "from compilers import memory; memory.available = lambda: 1 << 50"
    words = [sys.executable, "-c", f"{low}; from polarfab.cli import main; main()", "export"]
    command = " ".join(map(shlex.quote, [*words, "polarfly", "--q", "1009", "--json"]))
    run = subprocess.run(
        ["sh", "-c", f"ulimit -v 3500000; {command}"], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 2
    (error,) = run.stderr.splitlines()
    assert error.startswith("error: this machine has too little memory for that: ")


CLEARING = """
import os, signal
from polarfab import cli
def work(**_):
    try:
        os.kill(os.getpid(), signal.SIGHUP)
    finally:
        for number in (signal.SIGHUP, signal.SIGTERM):
            os.kill(os.getpid(), number)
        print("cleared away")
cli.cli.main = work
cli.main()
"""


def test_a_signal_in_a_callback_of_a_library_ends_the_process() -> None:
    """The exit was lost while machine code was compiled: a traceback, and the verb went on."""
    code = """if True:
        import ctypes, os, signal, time
        from polarfab import cli

        def terminate():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0)

        def verb(**_):
            ctypes.CFUNCTYPE(None)(terminate)()
            time.sleep(60)

        cli.cli.main = verb
        cli.main()
    """
    began = time.monotonic()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (128 + signal.SIGTERM, "")
    assert time.monotonic() - began < 50


def test_more_signals_do_not_cut_clearing_short() -> None:
    """The shell sends SIGHUP, then the kernel does, and a service manager SIGTERM."""
    done = subprocess.run([sys.executable, "-c", CLEARING], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (129, "cleared away\n", "")


def test_nohup_is_heeded() -> None:
    """What is ignored stays ignored."""
    told = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    code = f"from polarfab import cli\ncli.cli.main = lambda **_: exec({told!r})\ncli.main()"
    command = ["nohup", sys.executable, "-c", code]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.stdout == "True\n"


STARTING = """
import os, signal, sys
from controller.rollout import build_history
from polarfab import cli
class Reloaded(build_history.BuildHistory):
    def __init__(self, *arguments):
        os.kill(os.getpid(), signal.SIGHUP)
        super().__init__(*arguments)
build_history.BuildHistory = Reloaded
sys.argv[1:] = ["controller", "nothing-here"]
cli.main()
"""


def test_a_controller_that_starts_outlives_a_reload(tmp_path: Path) -> None:
    """`systemctl reload` ended it, as a closed terminal ends other commands."""
    command = [sys.executable, "-c", STARTING]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "nothing-here" in done.stderr


def test_a_signal_clears_up(tmp_path: Path) -> None:
    """SIGHUP is what a closed terminal sends."""
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text("name: large\ntopology: {family: polarfly, q: 43}\n")
    with Path(os.devnull).open("w") as nowhere:
        words = "compile", fabric, "-o", tmp_path / "b"
        run = command_line().start(*words, out=nowhere.fileno())
    limit = time.monotonic() + 60
    while not list(tmp_path.glob(".b.*.polarfab")):
        assert run.poll() is None
        assert time.monotonic() < limit, "nothing is written beside the build's place"
        time.sleep(0.001)
    run.send_signal(signal.SIGHUP)
    assert run.wait(60) == 128 + signal.SIGHUP
    assert {path.name for path in tmp_path.iterdir()} <= {"fabric.yaml", "b"}


def test_render_takes_the_place_of_no_file_and_no_build(run_here, build: Path) -> None:
    file = build.parent / "notes.txt"
    file.write_text("mine")
    for place, what in ((file, "a file"), (build, "a build")):
        code, error = run_here("render", build, "--target", "eos", "-o", place)
        wanted = f"error: {place}: required a folder for rendered files, given {what}; name another"
        assert (code, error.startswith(wanted)) == (2, True), error
    assert file.read_text() == "mine"
    assert run_here("folder", build, "--quiet")[0] == 0


def test_a_build_behind_a_link_and_from_inside(build: Path) -> None:
    """From inside it would leave the shell in a folder that is removed."""
    fabric, link = build.parent / "fabric.yaml", build.parent / "link"
    link.symlink_to("build")
    code, _, err = command_line()("compile", fabric, "-o", link)
    assert (code, err.startswith("no switch, cable, host")) == (0, True)
    assert link.is_symlink()
    assert (build / "verified.json").is_file()
    code, _, err = command_line()("compile", fabric, "-o", ".", cwd=build)
    assert code == 2
    assert "which is the working directory; name another folder" in err
    assert sorted(path.name for path in build.parent.iterdir()) == ["build", "fabric.yaml", "link"]


def test_a_build_that_cannot_be_marked_is_verified(run_here, build: Path) -> None:
    """Root may write everywhere, but no file over a folder."""
    (build / "verified.json").unlink()
    (build / "verified.json/x").mkdir(parents=True)
    said = f"cannot mark {build} as verified or not: Is a directory\n"
    assert run_here("verify", build) == (0, said)


def test_room_is_asked_for_only_where_a_disk_is_full(run_here, compiled: Path) -> None:
    code, error = run_here("compile", compiled / "fabric.yaml", "-o", "/proc/x")
    assert code == 2
    assert error.endswith("name another folder\n")


@pytest.mark.parametrize("given", [(), ("--set", "hwsku=other")])
def test_files_of_another_setting_are_explained(polarfab, tmp_path: Path, given) -> None:
    """Not so where verify had a --set, though it was another one."""
    (tmp_path / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
    build, out = tmp_path / "build", tmp_path / "out"
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", build)[0] == 0
    words = ("--target", "sonic", "--set", "hwsku=rendered")
    assert polarfab("render", build, "-o", out, *words)[0] == 0
    code, _, err = polarfab("verify", build, "--emitted", out, *given)
    assert code == 1
    assert "files that were rendered with --set: give the same --set to verify" in err
