"""What the machine refuses, and build folders that are damaged: one message, no bug report."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from polarfab import cli

POLARFAB = [sys.executable, "-m", "polarfab"]


def polarfab(*words: object, **how: object) -> subprocess.CompletedProcess[str]:
    how.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        [*POLARFAB, *map(str, words)], stderr=subprocess.PIPE, text=True, check=False, **how
    )


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    assert polarfab("compile", folder / "fabric.yaml", "-o", folder / "build").returncode == 0
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
        with Path("/dev/full").open("w") as full:
            run = polarfab(*words, stdout=full)
        said = "error: standard output cannot be written: No space left on device\n"
        assert (run.returncode, run.stderr) == (2, said)


def test_no_stdout_at_all() -> None:
    words = " ".join([*POLARFAB, "export", "polarfly", "--q", "3"])
    run = subprocess.run(["sh", "-c", f"{words} >&-"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_too_little_memory() -> None:
    words = " ".join([*POLARFAB, "export", "polarfly", "--q", "1009", "--json"])
    run = subprocess.run(
        ["sh", "-c", f"ulimit -v 3500000; {words}"], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert run.stderr.startswith("error: required a fabric that fits into memory: 1,019,091 ")


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_clears_up(tmp_path: Path, number: signal.Signals) -> None:
    """SIGHUP is what a closed terminal sends."""
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text("name: large\ntopology: {family: polarfly, q: 83}\n")
    command = [*POLARFAB, "compile", str(fabric), "-o", str(tmp_path / "b")]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    while not list(tmp_path.glob(".b.*.polarfab")):
        assert run.poll() is None
        assert time.monotonic() < limit, "nothing is written beside the build's place"
        time.sleep(0.001)
    run.send_signal(number)
    run.communicate(timeout=60)
    assert run.returncode == 128 + number
    assert {path.name for path in tmp_path.iterdir()} <= {"fabric.yaml", "b"}


@pytest.mark.parametrize("verb", ["verify", "explain", "cables", "emulate"])
@pytest.mark.parametrize("harm", ["short", "beyond", "manifest", "files"])
def test_a_damaged_build_is_bad_input(run_here, build: Path, verb: str, harm: str) -> None:
    if harm == "short":
        np.save(build / "arrays/class_port.npy", np.load(build / "arrays/class_port.npy")[:5])
    elif harm == "beyond":
        np.save(build / "arrays/far.npy", np.load(build / "arrays/far.npy") + 13)
    elif harm == "manifest":
        (build / "manifest.json").write_text("{}")
    else:
        manifest = json.loads((build / "manifest.json").read_text())
        (build / "manifest.json").write_text(json.dumps(manifest | {"files": 3}))
    more = {"explain": ["0", "1"], "emulate": ["--engine", "model"]}.get(verb, [])
    code, error = run_here(verb, build, *more)
    assert code == 2
    file = {"short": "arrays/class_port.npy", "beyond": "arrays/far.npy"}.get(harm, "manifest.json")
    assert error.startswith(f"error: {build / file}: required the file as it was compiled")
    assert error.endswith("; compile the build again\n")


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
    run = polarfab("compile", fabric, "-o", link)
    assert (run.returncode, run.stderr) == (0, "")
    assert link.is_symlink()
    assert (build / "verified.json").is_file()
    inside = polarfab("compile", fabric, "-o", ".", cwd=build)
    assert inside.returncode == 2
    assert "which is the working directory; name another folder with -o" in inside.stderr
    assert sorted(path.name for path in build.parent.iterdir()) == ["build", "fabric.yaml", "link"]


def test_a_build_of_others_can_be_verified(run_here, build: Path, monkeypatch) -> None:
    """Root may write everywhere, so the refusal is played."""

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("compilers.proof.verification.mark_verified", refused)
    said = f"cannot mark {build} as verified or not: Permission denied\n"
    assert run_here("verify", build) == (0, said)


@pytest.mark.parametrize("verb", ["render", "emulate", "controller"])
def test_a_build_that_changed_after_verify_is_refused(run_here, build: Path, verb: str) -> None:
    """Its tables still deliver, so only the digest tells."""
    assert run_here("verify", build)[0] == 0
    file = build / "arrays/host_mac.npy"
    np.save(file, np.load(file) + 1)
    more = {"render": ["--target", "ovs", "-o", build.parent / "out"]}.get(verb, [])
    required = "required the file as it was compiled, given a changed file"
    assert run_here(verb, build, *more) == (
        2,
        f"error: {file}: {required}; compile the build again\n",
    )


def test_room_is_asked_for_only_where_a_disk_is_full(compiled: Path) -> None:
    run = polarfab("compile", compiled / "fabric.yaml", "-o", "/proc/x")
    assert run.returncode == 2
    assert run.stderr.endswith("name another folder with -o\n")


def test_a_build_that_does_not_exist(tmp_path: Path) -> None:
    run = polarfab("verify", tmp_path / "nothing")
    assert run.returncode == 2
    assert "given no such folder; make one with: polarfab compile" in run.stderr
    (tmp_path / "fabric.yaml").write_text("name: lab\n")
    run = polarfab("verify", tmp_path / "fabric.yaml")
    assert run.returncode == 2
    assert "given a spec; compile it first: polarfab compile" in run.stderr


def test_one_link_is_one(build: Path) -> None:
    assert polarfab("explain", build, 0, 1).stdout.startswith("0 to 1: 1 link\n")
    assert "pairs over 1 link " in polarfab("verify", build, "--quick", "--verbose").stdout


@pytest.mark.parametrize(
    ("word", "meant"), [("ciscoo", "nxos"), ("Juniper", "junos"), ("eoss", "eos")]
)
def test_a_target_by_another_name(word: str, meant: str, build: Path, tmp_path: Path) -> None:
    text = f"name: lab\ntopology: {{family: polarfly, q: 3}}\ntargets: [{word}]\n"
    (tmp_path / "fabric.yaml").write_text(text)
    run = polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "out")
    assert "fabric.yaml:3: targets[0]: required one of eos, " in run.stderr
    assert run.stderr.endswith(f"given {word}; did you mean {meant}?\n")
    run = polarfab("render", build, "--target", word, "-o", tmp_path / "out")
    assert f"did you mean {meant}?" in run.stderr
