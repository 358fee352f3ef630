"""The container image: its file, its command where only the volume can be written, and itself.

Registries are not to be had where this runs. So the base of the image that is built here is made
of this machine's Python, shell and C library; all after `FROM` is as in the file.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs/operate/Containerfile"
LINES = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.M).replace("\\\n", "").splitlines()
STATE = "/var/lib/polarfab"
USER = "10001"


def said(instruction: str) -> str:
    """The words behind the only instruction of this name."""
    (line,) = [line for line in LINES if line.startswith(f"{instruction} ")]
    return line.removeprefix(f"{instruction} ")


COMMAND = [*json.loads(said("ENTRYPOINT")), *json.loads(said("CMD"))]
HEALTH = said("HEALTHCHECK").partition(" CMD ")[2]


def test_the_file_fits_the_product():
    from polarfab.commands.live.controller import command

    assert COMMAND[:2] == ["polarfab", "controller"]
    context = command.make_context("controller", COMMAND[2:])
    assert context.params["folder"] == Path(STATE, "build")
    assert said("EXPOSE").split() == [
        context.params[name].rpartition(":")[2] for name in ("listen", "http")
    ]
    assert (said("VOLUME"), said("WORKDIR")) == (STATE, STATE)
    assert said("USER") == f"{USER}:{USER}"
    (extras,) = re.findall(r"'\.\[(.*)\]'", said("RUN"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])


def test_the_context_is_what_the_wheel_is_built_from():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    rooms = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    files = {"LICENSE", "README.md", "hatch_build.py", "pyproject.toml"}
    files |= {"constraints.txt", "build-constraints.txt"}
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    assert kept == files | set(rooms)


@pytest.fixture
def state(tmp_path) -> Path:
    """The volume: a folder of the image's user with a build."""
    folder = tmp_path / "state"
    folder.mkdir()
    (tmp_path / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    compile_it = [sys.executable, "-m", "polarfab", "compile", "fabric.yaml", "-o", "state/build"]
    subprocess.run(compile_it, cwd=tmp_path, env=_environment(), check=True, capture_output=True)
    subprocess.run(["chown", "-R", USER, folder], check=True)
    return folder


def _environment(**variables: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)} | variables


READ_ONLY = f"""set -e
ip link set lo up
mount -t tmpfs -o mode=755 none /var/lib
mkdir {STATE}
mount --bind "$1" {STATE}
mount -o remount,bind,ro /
if touch /elsewhere 2> /dev/null; then exit 9; fi
cd {STATE}
shift
exec setpriv --reuid {USER} --regid {USER} --clear-groups --no-new-privs \\
  --inh-caps +dac_read_search --ambient-caps +dac_read_search "$@"
"""
"""Everything may be read, as in an image; nothing but the state can be written."""


@pytest.mark.live
def test_its_command_writes_only_in_the_volume(state):
    polarfab = state.with_name("polarfab")
    polarfab.write_text(f'#!/bin/sh\nexec {sys.executable} -m polarfab "$@"\n')
    polarfab.chmod(0o755)
    environment = _environment(
        HOME=STATE, PATH=f"{state.parent}:{os.environ['PATH']}", PYTHONDONTWRITEBYTECODE="1"
    )
    process = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", READ_ONLY, "-", state, *COMMAND],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    inside = ["nsenter", "--net", "--target", str(process.pid), "sh", "-c"]

    def healthy() -> bool:
        return not subprocess.run(
            [*inside, HEALTH], env=environment, capture_output=True
        ).returncode

    try:
        assert process.stdout
        process.stdout.readline()  # each question costs more than starting to listen does
        until(lambda: process.poll() is not None or healthy(), "the controller answers", 60)
        process.send_signal(signal.SIGHUP)
        actions = state / ".build.actions"
        until(lambda: process.poll() is not None or actions.exists(), "the action log", 30)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 0, said
    finally:
        process.kill()
        process.wait()
    assert not healthy()
    assert actions.stat().st_uid == int(USER)


# What a base image is not needed for, and this machine's Python may have in bulk.
UNUSED = {"site-packages", "test", "idlelib", "tkinter", "lib2to3", "__pycache__"}
TOOLS = [path for name in ("sh", "mkdir", "chown") if (path := shutil.which(name))]


def _libraries(*programs: Path | str) -> set[str]:
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    # What wheels expect of every Linux (PEP 600), besides what these programs need.
    every = r"=> (\S+/(?:libstdc\+\+|libgcc_s|libpthread|libdl|librt|libm)\.so\.\d+)$"
    return {*re.findall(r"(/\S+) \(", listed), *re.findall(every, known, re.M)}


def _base(file: Path) -> None:
    """Write a root file system with this machine's Python, its shell and what they need."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    python, library = Path(sys.base_prefix, "bin", name), Path(sys.base_prefix, "lib", name)
    with tarfile.open(file, "w") as root:
        for folder, mode in (("tmp", 0o1777), ("etc", 0o755), ("root", 0o755)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            root.addfile(entry)
        root.add(library, filter=lambda one: None if {*one.name.split("/")} & UNUSED else one)
        for path in _libraries(python, *TOOLS, *library.glob("lib-dynload/*.so")):
            root.add(Path(path).resolve(), path)
        for path in TOOLS:
            root.add(Path(path).resolve(), f"usr/bin/{Path(path).name}")
        root.add(python.resolve(), python)
        for name, there in (("bin", "usr/bin"), ("usr/bin/python3", str(python))):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, there
            root.addfile(link)


@pytest.fixture(scope="module")
def podman(tmp_path_factory) -> list[str]:
    """The command, with a store of its own."""
    store = tmp_path_factory.mktemp("containers")
    return [
        *("podman", "--root", str(store / "root"), "--runroot", str(store / "run")),
        *("--cgroup-manager", "cgroupfs", "--runtime", "runc"),
    ]


def _run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def image(podman, tmp_path_factory) -> Iterator[str]:
    """The image, built without a network from wheels that pip has found or made."""
    folder = tmp_path_factory.mktemp("image")
    _base(folder / "base.tar")
    _run(*podman, "import", folder / "base.tar", "localhost/base")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = ["--constraint", "constraints.txt", "--build-constraint", "build-constraints.txt"]
    wanted = [".[ryu,os-ken,http]", "hatchling", "pip"]
    _run(*pip, "wheel", *built, "--wheel-dir", folder / "wheels", *wanted)
    name = "localhost/polarfab"
    _run(
        *(
            *podman,
            "build",
            "--isolation",
            "chroot",
            "--network",
            "host",
            "--pull-never",
            "--layers=false",
        ),
        *("--format", "docker", "--file", FILE, "--tag", name),
        *("--build-arg", "BASE=localhost/base", "--build-arg", "PIP_NO_INDEX=1"),
        *("--build-arg", "PIP_FIND_LINKS=/wheels", "--volume", f"{folder}/wheels:/wheels:ro", ROOT),
    )
    yield name
    _run(*podman, "rmi", "--all", "--force")


@pytest.mark.long
@pytest.mark.container
def test_the_image_runs(podman, image, state):
    (made,) = json.loads(_run(*podman, "inspect", image))
    assert made["Healthcheck"]["Test"] == ["CMD-SHELL", HEALTH]
    # No limit above ours may be asked for, and none of podman's timers is there without systemd.
    limits = [f"--ulimit={name}=4096:4096" for name in ("nofile", "nproc")]
    _run(
        *(*podman, "run", "--detach", "--name", "one", "--network", "none", "--no-healthcheck"),
        *(*limits, "--read-only", "--tmpfs=/tmp", "--volume", f"{state}:{STATE}:U", image),
    )
    inside = [*podman, "exec", "one"]

    def healthy() -> bool:
        asked = subprocess.run([*inside, "sh", "-c", HEALTH], capture_output=True)
        return asked.returncode == 0

    try:
        until(healthy, "the controller in its container answers", 60)
        assert _run(*inside, "polarfab", "--version")
        stopped = _run(*podman, "stop", "--time", "30", "one")
        assert stopped
        (ended,) = json.loads(_run(*podman, "inspect", "one"))
        assert ended["State"]["ExitCode"] == 0, _run(*podman, "logs", "one")
    finally:
        _run(*podman, "rm", "--force", "one")
