"""The target of CONTRIBUTING.md: its blocks, written into a checkout, make a system."""

import json
import re
import shutil

import pytest

from tests.polarfab.forked import ROOT, CommandLine

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
    unused = shutil.ignore_patterns("*.nb[ci]", "golden")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=unused)
    blocks = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(blocks) == 6
    for indent, name, text in blocks:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(re.sub(f"^{indent}", "", text, flags=re.M))
    (folder / "fabric.yaml").write_text(SPEC)
    return folder


@pytest.fixture(scope="module")
def polarfab(checkout):
    """Its command line, called in its folder, where `build` is."""
    command_line = CommandLine(checkout).ready()

    def call(*words):
        return command_line(*words, cwd=checkout)

    code, _, err = call("compile", "fabric.yaml", "-o", "build")
    assert code == 0, err
    yield call
    command_line.close()


@pytest.mark.parametrize("hosts", [0, 2])
def test_its_files_are_read_back(hosts, polarfab, tmp_path):
    spec = tmp_path / "fabric.yaml"
    spec.write_text(f"{SPEC}hosts_per_node: {hosts}\n")
    build, out = str(tmp_path / "build"), str(tmp_path / "out")
    assert polarfab("compile", spec, "-o", build)[0] == 0
    code, said, err = polarfab("render", build, "--target", "vyos", "-o", out)
    assert code == 0, err
    assert "not read" not in said + err
    file = tmp_path / "out" / "4" / "vyos.set"
    lines = file.read_text().splitlines(keepends=True)
    for at in (1, -1):
        file.write_text("".join(line for line in lines if line is not lines[at]))
        words = "verify", build, "--emitted", out, "--target", "vyos"
        assert polarfab(*words)[0] == 1, lines[at]


def test_others_know_it(checkout, polarfab):
    """The list of targets, a message, Ansible's playbook, and the check of the wiring."""
    listed = json.loads(polarfab("targets", "--json")[1])
    assert "vyos" in [one["name"] for one in listed]
    _, _, err = polarfab("render", "build", "--target", "vyatta", "-o", "none")
    assert "did you mean vyos?" in err
    words = "--target", "ansible", "--set", "system=vyos", "-o", "ansible"
    assert polarfab("render", "build", *words)[0] == 0
    assert "vyos.vyos.vyos_config" in (checkout / "ansible" / "push.yaml").read_text()
    port = {"eth1": {"chassis": {"n": {}}, "port": {"id": {"type": "ifname", "value": "eth1"}}}}
    (checkout / "0.json").write_text(json.dumps({"lldp": {"interface": [port]}}))
    code, _, err = polarfab("check", "wiring", "build", "0.json")
    assert code in (0, 1), err


def test_what_it_lacks_is_said(checkout, polarfab):
    code, _, err = polarfab("push", "build", "--target", "vyos", "--dry-run")
    assert code == 2
    assert "given vyos; Ansible loads the files of" in err
    (checkout / "one.yaml").write_text(SPEC.replace("minimal", "compact-valiant"))
    code, _, err = polarfab("compile", "one.yaml", "-o", "one")
    assert code == 2
    assert "required a policy that system vyos can do" in err
