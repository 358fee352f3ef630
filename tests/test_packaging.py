"""The wheel: one package that works where pipx puts it, whatever else is called as our folders.

`make test` builds it and looks at its files. `make test-versions` has --other-pythons, for the
tests that need a Python: the wheel is installed on every other one of this machine, with the newest
release of every dependency.

The environment that pipx made then gets PyPI's own `inventory`, `templates` and `controller`, and
every command runs in a folder with an `inventory.py`, a `controller.py` and a `templates/` that
fail when imported.
"""

import fcntl
import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
import zipfile
from contextlib import closing
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from polarfab import __version__
from tests.interpreters import interpreters
from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
NAMESAKES = ["inventory==2.0.1", "templates==0.0.5", "controller==0.1.0"]
UV = [sys.executable, "-m", "uv", "--quiet"]
CONSTRAINED = ["--constraint", str(ROOT / "constraints.txt")]
HELLO = bytes([4, 0])
"""OpenFlow 1.3, OFPT_HELLO."""
HOSTILE = "raise SystemExit('a file of the user was imported')\n"


def run(
    *command: str | Path, cwd: Path, code: int = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run where nothing of the checkout can be imported."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=environment(**variables),
        timeout=300,
    )
    assert done.returncode == code, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def environment(**variables: str) -> dict[str, str]:
    """The environment without what points at the checkout; no machine code is made for later."""
    hidden = {"PYTHONPATH", "VIRTUAL_ENV"}
    kept = {k: v for k, v in os.environ.items() if k not in hidden}
    return kept | {"POLARFAB_LOOPS": "python"} | variables


MEGABYTES = 370
"""What README says that `make demo` takes, 400, without pip and the bytecode of Python files."""


def installed_with(name, extras):
    """The names of the distributions that pip installs for one with these extras, and its own."""
    names, left = set(), [(name, extra) for extra in ("", *extras)]
    while left:
        name, extra = left.pop()
        if (name, extra) in names:
            continue
        names.add((name, extra))
        for requirement in map(Requirement, distribution(name).requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                left += [(requirement.name, extra) for extra in ("", *requirement.extras)]
    return {name.lower() for name, _ in names}


def test_the_demo_installs_what_the_readme_says():
    """With the API of the controller, whose commands the first page of the manual types.

    It is 995 MB with what the tests and the manual need.
    """
    extras = re.search(r"^DEMO_EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    names = installed_with("polarfab", extras.split(","))
    sizes = {n: sum(file.size or 0 for file in distribution(n).files) for n in names}
    assert names >= {"ryu", "mininet", "uvicorn", "prometheus-client", "numba", "galois"}
    assert sum(sizes.values()) < MEGABYTES * 10**6, sorted(sizes, key=sizes.get)[-5:]


def pytest_generate_tests(metafunc):
    """One home a Python, all its tests on one worker."""
    if "interpreter" in metafunc.fixturenames:
        found = here = {f"3.{sys.version_info.minor}": Path(sys.executable)}
        if metafunc.config.getoption("--other-pythons"):
            found = {v: path for v, path in interpreters().items() if v not in here} or here
        metafunc.parametrize(
            "interpreter",
            [
                pytest.param(path, id=version, marks=pytest.mark.xdist_group(version))
                for version, path in found.items()
            ],
            scope="module",
        )


def in_the_wheel(path: Path) -> str:
    """Where a file of the checkout is in the wheel."""
    folder, *rest = path.relative_to(ROOT).parts
    return "/".join([WHEEL["sources"].get(folder, folder), *rest])


def source_files() -> set[str]:
    """Every file of every folder, code and data, that a user of the wheel needs."""
    return {
        in_the_wheel(path)
        for folder in WHEEL["packages"]
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix[:3] != ".nb"
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from the source distribution by the first worker that needs it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers
    built = folder / "dist"
    built.mkdir(exist_ok=True)
    with (folder / "dist.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not [*built.glob("polarfab-*.whl")]:
            builder = sys.executable, "-m", "build", "--installer", "uv"
            run(*builder, "--outdir", built, ROOT, cwd=folder)
    (found,) = built.glob("polarfab-*.whl")
    return found


@pytest.fixture(scope="module")
def home(wheel, interpreter, tmp_path_factory) -> Path:
    """What `pipx install` of the wheel makes, in a home of its own."""
    folder = tmp_path_factory.mktemp("home")
    places = {f"PIPX_{what}": str(folder / what) for what in ("HOME", "BIN_DIR", "MAN_DIR")}
    run(
        *(sys.executable, "-m", "pipx", "install", "--quiet", "--python", interpreter),
        *("--pip-args=--no-compile", wheel),
        cwd=folder,
        **places,
    )
    return folder


@pytest.fixture(scope="module")
def python(home) -> Path:
    """Python of the environment, with the wheel's namesakes on top."""
    found = home / "HOME/venvs/polarfab/bin/python"
    run(*UV, "pip", "install", "--python", found, "--no-deps", *NAMESAKES, cwd=home)
    return found


@pytest.fixture(scope="module")
def desk(python, tmp_path_factory) -> Path:
    """A user's folder with a fabric and its build, beside files that must not be imported."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("inventory.py", "controller.py", "compilers.py", "templates/__init__.py"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(HOSTILE)
    (folder / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    run(python, "-m", "polarfab", "compile", "fabric.yaml", "-o", "build", cwd=folder)
    return folder


def test_the_wheel_is_one_package_with_every_file(wheel):
    held = zipfile.ZipFile(wheel).namelist()
    assert len(held) == len(set(held))
    assert "polarfab/extensions/host_paths/path_sets.py" in held
    assert "polarfab/py.typed" in held
    ours = {name for name in held if ".dist-info/" not in name}
    assert ours == source_files()
    assert {name.split("/")[0] for name in ours} == {"polarfab"}
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_every_folder_moves_into_the_package():
    folders = set(WHEEL["packages"]) - {"polarfab"}
    assert WHEEL["sources"] == {folder: f"polarfab/{folder}" for folder in folders}


def test_namesakes_overwrite_nothing(wheel, python, desk):
    code = "import inventory, sysconfig; print(sysconfig.get_path('purelib'))"
    installed = Path(run(python, "-P", "-c", code, cwd=desk).stdout.strip())
    assert (installed / "inventory/sql.py").is_file(), "the namesake is there"
    archive = zipfile.ZipFile(wheel)
    changed = {
        name
        for name in archive.namelist()
        if name.startswith("polarfab/")
        and hashlib.sha256(archive.read(name)).digest()
        != hashlib.sha256((installed / name).read_bytes()).digest()
    }
    assert changed == set()


def test_without_extras_a_topology_loads_little(python, desk):
    listed = run(*UV[:-1], "pip", "freeze", "--python", python, cwd=desk).stdout.lower()
    assert re.search(r"^numpy==", listed, re.MULTILINE)
    assert not re.search(r"^(ryu|os-ken|mininet)==", listed, re.MULTILINE)
    polarfab = python.with_name("polarfab")
    assert re.search(r"\b\d+\.\d+\.\d+", run(polarfab, "--version", cwd=desk).stdout)
    topology = run(
        *(python, "-X", "importtime", polarfab),
        *("export", "polarfly", "--q", "3"),
        cwd=desk,
    )
    edges = [tuple(map(int, line.split())) for line in topology.stdout.splitlines()]
    assert len(edges) == 24  # q(q+1)²/2
    assert edges == sorted(edges)
    imported = {line.split("|")[-1].strip() for line in topology.stderr.splitlines()}
    assert "numpy" in imported
    assert imported & {"ryu", "os_ken", "galois", "mininet"} == set()


def test_pipx_has_the_program_on_the_path(home, desk):
    polarfab = home / "BIN_DIR/polarfab"
    assert run(polarfab, "--version", cwd=desk).stdout.split()[-1] == __version__
    refused = run(polarfab, "controller", "build", cwd=desk, code=2).stderr
    assert "pipx runpip polarfab install 'polarfab[os-ken]'" in refused


def test_uvx_runs_the_wheel(wheel, tmp_path):
    once = "tool", "run", "--no-python-downloads", "--python", sys.executable
    uvx = [*UV, *once, *CONSTRAINED, "--from", wheel]
    assert run(*uvx, "polarfab", "--version", cwd=tmp_path).stdout.split()[-1] == __version__


def test_commands_run_beside_files_of_the_same_names(python, desk):
    polarfab = [python, "-m", "polarfab"]
    for target in ("ovs", "eos"):  # `test_a_script_uses_the_library` renders frr, and verifies
        run(*polarfab, "render", "build", "--target", target, "-o", f"out-{target}", cwd=desk)
        assert len([*(desk / f"out-{target}").glob("*/")]) == 13
    shown = run(*polarfab, "emulate", "first-light-q3", "--engine", "model", cwd=desk)
    assert "156 of 156 pairs" in shown.stdout
    run(*polarfab, "simulate", "--help", cwd=desk)


SCRIPT = """import polarfab
fabric: polarfab.Fabric = polarfab.Fabric.from_spec("fabric.yaml").compile()
assert fabric.verify().passed
fabric = fabric.save("scripted")
fabric.render("frr", "scripted-frr")
print(fabric.proved[0].delivery, polarfab.emulate(fabric, engine='model').passed)
"""


def test_a_script_uses_the_library(python, desk):
    (desk / "script.py").write_text(SCRIPT)
    assert run(python, "script.py", cwd=desk).stdout == "True True\n"


@pytest.mark.long
def test_a_script_is_typed(python, desk):
    (desk / "script.py").write_text(SCRIPT + "fabric.verify(seed='1')\n")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "script.py"]
    found = run(*mypy, cwd=desk, code=1).stdout.splitlines()
    assert [line.partition(" ")[0] for line in found[:-1]] == ["script.py:7:"]
    assert found[0].endswith("[arg-type]")


@pytest.fixture(scope="module")
def with_frameworks(home, python) -> Path:
    """The same Python with the extras of both controllers."""
    # As the refusal above says; polarfab itself is on no index, and what is installed counts.
    run(
        *(sys.executable, "-m", "pipx", "runpip", "polarfab", "install", "polarfab[ryu,os-ken]"),
        cwd=home,
        PIPX_HOME=str(home / "HOME"),
        PIP_BUILD_CONSTRAINT=str(ROOT / "build-constraints.txt"),
        UV_BUILD_CONSTRAINT=str(ROOT / "build-constraints.txt"),  # pipx installs by uv, if there
    )
    return python


def free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def greeting(port: int) -> bytes:
    """The header of what a controller sends to a switch that connects, b"" while none listens."""
    try:
        with closing(socket.create_connection(("127.0.0.1", port), 30)) as caller:
            return caller.recv(8, socket.MSG_WAITALL)
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    "command",
    [
        "-m polarfab controller build --framework ryu --listen 127.0.0.1:{port}",
        "-m polarfab controller build --framework os-ken --listen 127.0.0.1:{port}",
    ],
)
def test_the_controller_greets(with_frameworks, desk, command):
    port = free_port()
    with (desk / "log").open("w+") as log:
        process = subprocess.Popen(
            [with_frameworks, *command.format(port=port).split()],
            cwd=desk,
            env=environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            until(lambda: greeting(port) or process.poll() is not None, command, 180)
            assert process.poll() is None, (desk / "log").read_text()[-3000:]
            assert greeting(port)[:2] == HELLO
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0, (desk / "log").read_text()[-3000:]
        finally:
            process.kill()
            process.wait()
