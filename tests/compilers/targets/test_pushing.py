"""Targets that push another target's files: containerlab and Ansible, by their own tools."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import pytest
import yaml

from compilers.targets.push import containerlab
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.routed import agreed, routed
from tests.compilers.targets.ansible_modules import ready_python
from tests.vtysh import NEEDS_VTYSH

PUSHED = ["frr", "linux", "sonic", "eos", "nxos", "junos", "srlinux", "nvue"]
LABS = ["frr", "srlinux", "sonic", "eos"]
ENDS = {"frr": "eth{}", "srlinux": "e1-{}", "sonic": "eth{}", "eos": "eth{}"}


def managed(q=2, **parameters):
    """A build whose first nodes have management addresses, and IPv6."""
    build = routed(q=q, **parameters)
    order = build.tables.switches
    addresses = ["192.0.2.10", "2001:db8::b"] + [""] * (order - 2)
    plan = replace(build.addressing, ipv6=IPv6Network("fd00::/48"))
    wiring = replace(build.wiring, management=tuple(addresses))
    return replace(build, addressing=plan, wiring=wiring, identity="0123456789abcdef")


def pushed(build, folder, name, system, **of_system):
    target(system).render(agreed(build, of_system), folder / system)
    options = {"system": system, "configs": f"../{system}"}
    target(name).render(build, folder / name, options=options)
    return folder / name


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


SYSTEMCTL = """#!/bin/sh
case $* in
*restart*|*reload\\ *) echo "$*" >> {log} ;;
*show*) echo Id=x; echo LoadState=loaded; echo ActiveState=active; echo SubState=exited ;;
esac
"""


def systemctl(folder):
    """A `systemctl` in front of the machine's, and the file where it says what it was asked."""
    program, log = folder / "bin" / "systemctl", folder / "asked"
    program.parent.mkdir()
    program.write_text(SYSTEMCTL.format(log=log))
    program.chmod(0o755)
    return log


def ansible(tool, *words, home):
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    local = {"HOME": str(home), "PATH": path, "ANSIBLE_LOCALHOST_WARNING": "false"}
    environment = {**os.environ, **local}
    return run(Path(sys.executable).with_name(tool), *words, env=environment)


@NEEDS_VTYSH
@pytest.mark.parametrize(
    ("options", "daemons"),
    [
        pytest.param({}, "bgpd=no\n", marks=pytest.mark.long),
        ({"routing": "bgp", "bfd": "on"}, "bgpd=yes\nbfdd=yes\n"),
    ],
)
def test_ansible_plays_the_playbook(options, daemons, tmp_path):
    """On this machine, in a folder for /etc, with a `systemctl` that writes down what it is asked
    to do; vtysh judges first. The same playbook after it changes nothing.
    """
    folder = pushed(managed(), tmp_path, "ansible", "frr", **options)
    (tmp_path / "etc" / "frr").mkdir(parents=True)
    (tmp_path / "etc" / "frr" / "daemons").write_text("bgpd=no\n")
    here = {"ansible_connection": "local", "ansible_become": False}
    words = ("-i", folder / "inventory.yaml", *[folder / "push.yaml"] * 2, "--limit", "3")
    (tmp_path / "etc" / "systemd" / "system").mkdir(parents=True)
    asked = systemctl(tmp_path)
    with ready_python(tmp_path) as python:
        places = {"polarfab_etc": str(tmp_path / "etc"), "ansible_python_interpreter": str(python)}
        extra = ("-e", json.dumps(places | here))
        told = ansible("ansible-playbook", *words, *extra, home=tmp_path)
    assert asked.read_text().splitlines() == ["restart polarfab", "restart frr"]
    once, twice = re.findall(r"changed=(\d+) +unreachable=0 +failed=0", told)
    assert once == twice != "0", "tasks that changed something so far"
    assert (tmp_path / "etc" / "frr" / "daemons").read_text() == daemons
    for name in ("frr/frr.conf", "polarfab/links.batch", "polarfab/load.sh"):
        wanted = (tmp_path / "frr" / "3" / Path(name).name).read_text()
        assert (tmp_path / "etc" / name).read_text() == wanted


def test_ansible_takes_playbooks_of_its_core(tmp_path):
    """Those of the others need collections that are not here."""
    folders = [
        pushed(managed(), tmp_path / system, "ansible", system)
        for system in ("linux", "sonic", "srlinux", "nvue")
    ]
    words = ("--syntax-check", "-i", folders[0] / "inventory.yaml")
    ansible(
        "ansible-playbook", *words, *(folder / "push.yaml" for folder in folders), home=tmp_path
    )


def test_what_is_pushed_is_confirmed_and_saved(tmp_path):
    """Junos goes back unless it is confirmed, and commits nothing where it only checks; others
    forget at a reboot what is not saved.
    """
    tasks = {}
    for system in ("junos", "sonic", "eos", "nxos", "frr", "linux", "srlinux", "nvue"):
        folder = pushed(managed(), tmp_path / system, "ansible", system)
        tasks[system] = yaml.safe_load((folder / "push.yaml").read_text())[0]["tasks"]
    merge, answer, confirm = tasks["junos"]
    module = "junipernetworks.junos.junos_config"
    assert merge[module].items() >= {("confirm", 5), ("src_format", "set")}
    assert "check_commit" not in merge[module]
    assert "junipernetworks.junos.junos_command" in answer
    assert confirm[module] == {"confirm_commit": True}
    assert tasks["sonic"][-2]["ansible.builtin.command"] == "config save -y"
    assert tasks["srlinux"][-1]["ansible.builtin.raw"] == "save startup"
    assert [task.get("ansible.builtin.command") for task in tasks["nvue"][3:-1]] == [
        "nv config apply --confirm-yes",
        "nv config save",
    ]
    for system, collection in (("eos", "arista.eos.eos"), ("nxos", "cisco.nxos.nxos")):
        assert tasks[system][-1][f"{collection}_config"]["save_when"] == "modified"
    for system in ("frr", "linux"):
        units = [task.get("ansible.builtin.systemd_service", {}) for task in tasks[system]]
        assert any(unit.get("enabled") for unit in units)


@pytest.mark.parametrize("system", PUSHED)
def test_playbooks_name_files_that_are_there(system, tmp_path):
    folder = pushed(managed(), tmp_path, "ansible", system)
    (play,) = yaml.safe_load((folder / "push.yaml").read_text())
    text = json.dumps(play["tasks"])
    wanted = [name for name in target(system).files if name != "avd.json"]
    assert all(name in text for name in wanted)
    facts = yaml.safe_load((folder / "inventory.yaml").read_text())["fabric"]
    assert all(
        (folder / host["polarfab_folder"] / name).is_file()
        for host in facts["hosts"].values()
        for name in wanted
    )


@pytest.mark.parametrize("system", LABS)
def test_containerlab_has_the_fabric(system, tmp_path):
    """Nodes and links against the wiring; the published schema: docs/targets/routers.md."""
    build = managed(hosts=2)
    folder = pushed(build, tmp_path, "containerlab", system)
    lab = yaml.safe_load((folder / "topology.clab.yml").read_text())
    nodes, w = lab["topology"]["nodes"], build.wiring
    assert set(nodes) == {*w.names, *w.host_names}
    wanted = set()
    for v, k in zip(*(w.far >= 0).nonzero(), strict=True):
        ends = ((v, w.port[v, k]), (w.far[v, k], w.far_port[v, k]))
        wanted.add(frozenset(f"{u}:{ENDS[system].format(port)}" for u, port in ends))
    for v, h in zip(*w.host_port.nonzero(), strict=True):
        here = f"{v}:{ENDS[system].format(w.host_port[v, h])}"
        wanted.add(frozenset((here, f"h{v}-{h}:eth1")))
    links = [frozenset(link["endpoints"]) for link in lab["topology"]["links"]]
    assert len(links) == len(set(links))
    assert set(links) == wanted
    assert len({end for link in links for end in link}) == 2 * len(links)
    for name in w.names:
        bound = [bind.split(":")[0] for bind in nodes[name].get("binds", [])]
        bound += [nodes[name]["startup-config"]] if "startup-config" in nodes[name] else []
        assert bound
        assert all((folder / path).is_file() for path in bound)
        assert nodes[name]["kind"] == containerlab.CONTAINER_KINDS[system].kind


def test_containerlab_hosts_reach_the_fabric_and_nothing_else(tmp_path):
    folder = pushed(managed(), tmp_path, "containerlab", "frr")
    lab = yaml.safe_load((folder / "topology.clab.yml").read_text())
    assert lab["topology"]["nodes"]["h3"] == {
        "kind": "linux",
        "image": "alpine:3",
        "exec": [
            "ip address add 10.0.0.14/30 dev eth1",
            "ip route add 10.0.0.0/27 via 10.0.0.13 dev eth1",
            "ip -6 address add fd00:0:0:3::2/64 dev eth1",
            "ip -6 route add fd00::/61 via fd00:0:0:3::1 dev eth1",
        ],
    }


@pytest.mark.parametrize(
    ("system", "name", "port", "wired"),
    [
        ("srlinux", "ethernet-1/3", 3, "e1-3"),
        ("srlinux", "ethernet-1/3/1", 9, "e1-3-1"),
        ("eos", "Ethernet12", 12, "eth12"),
        ("eos", "Ethernet3/1", 9, "eth3_1"),
        ("sonic", "Ethernet8", 3, "eth3"),
        ("frr", "swp4", 4, "swp4"),
    ],
)
def test_names_that_containerlab_wires(system, name, port, wired):
    assert containerlab.INTERFACES[system].lab_interface(name, port) == wired


def test_containerlab_refuses(tmp_path):
    build = managed()
    ports = (("eth0", *build.wiring.port_names[0][1:]),)
    clash = replace(build.wiring, port_names=ports, host_names=("1", *build.wiring.host_names[1:]))
    pool = replace(build.addressing, ipv4=IPv4Network("172.16.0.0/12"))
    with pytest.raises(InputError) as error:
        target("containerlab").render(
            replace(build, wiring=clash, addressing=pool), tmp_path / "out"
        )
    text = str(error.value)
    assert "hosts: required a name of at most 63 letters, digits and . _ -, that no node" in text
    assert "node_types: required ports that containerlab leaves to the fabric: eth0 is" in text
    assert "addressing.ipv4: required a pool outside 172.28.0.0/16, containerlab's" in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["ansible", "containerlab"])
def test_no_name_or_folder_gets_into_a_file_unchecked(name, tmp_path):
    build = managed()
    wiring = replace(build.wiring, names=("a\n- x: y", *build.wiring.names[1:]))
    with pytest.raises(InputError, match="nodes: required a name of at most 63 letters"):
        target(name).render(replace(build, wiring=wiring), tmp_path / "out")
    for option, value in (("configs", "a b"), ("configs", "-x"), ("system", "ios")):
        with pytest.raises(InputError, match=f"set {option}: required "):
            target(name).render(build, tmp_path / "out", options={option: value})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "system"), [("containerlab", "frr"), ("ansible", "frr")])
def test_golden(name, system, tmp_path, golden):
    folder = pushed(managed(), tmp_path, name, system)
    for path in sorted(folder.iterdir()):
        golden(path.read_text(), f"{name}_q2_{path.name}")
