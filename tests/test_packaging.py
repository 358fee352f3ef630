"""The wheel holds every room and works in an empty environment, without Ryu and its build."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ["polarfab", "compilers", "inventory", "templates", "controller", "mininet_scenarios"]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run in a folder that is not the checkout, so that only what is installed can be imported."""
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def source_files() -> set[str]:
    """Every file of every room, code and data, that a user of the wheel needs."""
    return {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix[:3] != ".nb"
    }


def test_wheel_installs_and_runs_without_extras(tmp_path: Path) -> None:
    built = tmp_path / "dist"
    run(sys.executable, "-m", "build", "--wheel", "--outdir", built, ROOT, cwd=tmp_path)
    (wheel,) = built.glob("polarfab-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    assert "compilers/topology/conway.json" in held
    assert source_files() - held == set()
    assert {name.split("/")[0] for name in held if ".dist-info/" not in name} == set(ROOMS)
    assert any(name.endswith("licenses/LICENSE") for name in held)

    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv/bin/python"
    constraints = ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", "-q", "-c", constraints, wheel, cwd=tmp_path)
    listed = run(python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path).stdout.lower()
    assert not re.search(r"^(ryu|os-ken|mininet)==", listed, re.MULTILINE)

    polarfab = tmp_path / "venv/bin/polarfab"
    assert re.search(r"\b\d+\.\d+\.\d+", run(polarfab, "--version", cwd=tmp_path).stdout)
    topology = run(
        *(python, "-X", "importtime", polarfab),
        *("topology", "polarfly", "--q", "3", "--format", "edges"),
        cwd=tmp_path,
    )
    edges = [tuple(map(int, line.split())) for line in topology.stdout.splitlines()]
    assert len(edges) == 24  # q(q+1)²/2
    assert edges == sorted(edges)
    imported = {line.split("|")[-1].strip() for line in topology.stderr.splitlines()}
    assert "numpy" in imported
    assert imported & {"ryu", "os_ken", "galois", "mininet"} == set()
