"""The target of CONTRIBUTING.md: its blocks, written into a checkout, make a system."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("compilers", "controller", "extensions", "inventory"),
    *("mininet_scenarios", "polarfab", "templates"),
)
BLOCK = re.compile(r"^( *)```\w+ ((?:compilers|templates)/\S+)\n(.*?)^ *```$", re.M | re.S)
SPEC = """name: lab
topology: {family: polarfly, q: 3}
routing: {balance: minimal}
addressing: {ipv6: "fd00::/48"}
system: vyos
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout with the files of the page, and nothing else of the system."""
    folder = tmp_path_factory.mktemp("checkout")
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    blocks = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(blocks) == 6
    for indent, name, text in blocks:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(re.sub(f"^{indent}", "", text, flags=re.M))
    (folder / "fabric.yaml").write_text(SPEC)
    done = polarfab(folder, "compile", "fabric.yaml", "-o", "build")
    assert done.returncode == 0, done.stderr
    assert polarfab(folder, "verify", "build").returncode == 0
    return folder


def polarfab(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "polarfab", *words],
        env=os.environ | {"PYTHONPATH": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("hosts", [0, 2])
def test_its_files_are_read_back(hosts, checkout, tmp_path):
    spec = tmp_path / "fabric.yaml"
    spec.write_text(f"{SPEC}hosts_per_node: {hosts}\n")
    build, out = str(tmp_path / "build"), str(tmp_path / "out")
    for words in (("compile", str(spec), "-o", build), ("verify", build)):
        assert polarfab(checkout, *words).returncode == 0
    done = polarfab(checkout, "render", build, "--target", "vyos", "-o", out)
    assert done.returncode == 0, done.stderr
    assert "not read" not in done.stdout + done.stderr
    file = tmp_path / "out" / "4" / "vyos.set"
    lines = file.read_text().splitlines(keepends=True)
    for at in (1, -1):
        file.write_text("".join(line for line in lines if line is not lines[at]))
        done = polarfab(checkout, "verify", build, "--emitted", out, "--target", "vyos")
        assert done.returncode == 1, lines[at]


def test_others_know_it(checkout):
    """The list of targets, a message, Ansible's playbook, and the check of the wiring."""
    listed = json.loads(polarfab(checkout, "targets", "--json").stdout)
    assert "vyos" in [one["name"] for one in listed]
    done = polarfab(checkout, "render", "build", "--target", "vyatta", "-o", "none")
    assert "did you mean vyos?" in done.stderr
    words = "--target", "ansible", "--set", "system=vyos", "-o", "ansible"
    assert polarfab(checkout, "render", "build", *words).returncode == 0
    assert "vyos.vyos.vyos_config" in (checkout / "ansible" / "push.yaml").read_text()
    port = {"eth1": {"chassis": {"n": {}}, "port": {"id": {"type": "ifname", "value": "eth1"}}}}
    (checkout / "0.json").write_text(json.dumps({"lldp": {"interface": [port]}}))
    done = polarfab(checkout, "check", "wiring", "build", "0.json")
    assert done.returncode in (0, 1), done.stderr


def test_what_it_lacks_is_said(checkout):
    done = polarfab(checkout, "push", "build", "--target", "vyos", "--dry-run")
    assert done.returncode == 2
    assert "given vyos; Ansible loads the files of" in done.stderr
    (checkout / "one.yaml").write_text(SPEC.replace("minimal", "compact-valiant"))
    done = polarfab(checkout, "compile", "one.yaml", "-o", "one")
    assert done.returncode == 2
    assert "required a policy that system vyos can do" in done.stderr
