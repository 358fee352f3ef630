"""`polarfab push` where no device is: what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compilers.targets.devices.device_shell import DeviceShell
from compilers.targets.linux.device import LinuxDevice
from controller.devices.device_push import PushSettings
from controller.devices.push_report import PushedSwitch, PushReport
from polarfab.fabric import Fabric
from polarfab.switches import push

DEVICE = LinuxDevice(DeviceShell(("false",)), Path(), "/etc", ())


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build") / "b"
    Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 3}}).save(folder)
    return folder


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build whose switches have addresses."""
    folder = tmp_path_factory.mktemp("named")
    nodes = "".join(
        f"  - {{name: n{v}, type: leaf, datapath_id: {v + 1}, management: 192.0.2.{v + 1}}}\n"
        for v in range(7)
    )
    types = "node_types: {leaf: {ports: [{name: 'eth{}', count: 8}]}}\n"
    (folder / "inventory.yaml").write_text(f"{types}nodes:\n{nodes}")
    spec = "name: lab\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\n"
    (folder / "named.yaml").write_text(spec)
    Fabric.from_spec(folder / "named.yaml").save(folder / "n")
    return folder / "n"


def test_what_is_refused(polarfab, build) -> None:
    old = ("--from", build, "--run", "false")
    reason = "next hops of the kernel are numbered by build, so routes of two cannot mix"
    assert reason in polarfab("push", build, "--target", "linux", *old)[2]
    for option, value, said in (
        ("--node", "3", "--node: required all switches with --from"),
        ("--batch", "2", "--batch: required no batches with --from"),
        ("--stop-on", "3", "--stop-on: required the first failure to end a push with --from"),
    ):  # the last two were taken without an effect
        words = ("push", build, "--target", "frr", *old, option, value)
        assert said in polarfab(*words)[2]
        assert said in polarfab(*words, "--dry-run")[2]


def test_a_switch_without_an_address_is_reached_by_its_host_name(polarfab, build, tmp_path) -> None:
    """Programs take the name of node 1 for the address 0.0.0.1 (inet(3))."""
    reach = tmp_path / "reach"
    reach.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/reached\nexit 1\n')
    reach.chmod(0o755)
    words = ("push", build, "--target", "linux", "--node", "1", "--run", f"{reach} {{address}}")
    assert polarfab(*words)[0] == 1
    assert (tmp_path / "reached").read_text() == "sw-1\n"
    assert "-o ConnectTimeout=10" in PushSettings().run
    assert "-o BatchMode=yes" in PushSettings().run


def test_no_ssh(polarfab, named, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(named.parent))
    code, _, err = polarfab("push", named, "--target", "linux", "--dry-run")
    assert code == 2
    assert "required ssh (Debian: openssh-client), given none\n" in err
    for run, program in (("no-such-shell {node}", "no-such-shell"), (" ", "a program")):
        code, _, err = polarfab("push", named, "--target", "linux", "--dry-run", "--run", run)
        assert (code, f"--run: required {program}, given none\n" in err) == (2, True), err
    code, _, err = polarfab("push", named, "--target", "linux", "--run", "ssh {adress}")
    assert "given 'ssh {adress}'; no {adress} is known\n" in err


def test_routes_of_others_in_the_pools(polarfab, build, tmp_path: Path) -> None:
    entries = [
        {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "protocol": "static"},
        {"dst": "192.0.2.9", "dev": "eth0", "protocol": "static"},
        {"dst": "10.0.0.60", "dev": "eth0", "protocol": "static"},
        {"dst": "10.0.0.61", "dev": "eth0", "protocol": "80"},
    ]
    routes = json.dumps([entry | {"flags": []} for entry in entries])
    reach = tmp_path / "reach"
    reach.write_text(
        f"""#!/bin/sh
case "$1" in *push.lock*) exec sh -c "$1";; esac
echo "$1" >> {tmp_path}/asked
case "$1" in *"route show"*) echo '{routes}';; ip*) echo '[]';; esac
"""
    )
    reach.chmod(0o755)
    words = ("push", build, "--target", "linux", "--node", "3", "--run", reach, "--etc", tmp_path)
    for dry in ((), ("--dry-run",)):
        code, _, err = polarfab(*words, *dry)
        assert code == 1
        assert (
            "3: required no routes of others in the fabric's address pools, "
            "given 10.0.0.60/32 in table main; take them away first, a push does not\n" in err
        )
    reads = (
        "ip -json ",
        "sed -n ",
        "cat ",
        "grep ",
        "sha256sum ",
        "cd /proc/sys && xargs grep ",
        "if [ ! -d /run/systemd/",
        "elif systemctl -q is-enabled ",
    )
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line for line in asked if not line.startswith(reads)] == []
    routes_only_ours = reach.read_text().replace("10.0.0.60", "203.0.113.7")
    reach.write_text(routes_only_ours)
    code, out, _ = polarfab(*words, "--dry-run")
    assert code == 0
    assert "route delete 10.0.0.61/32 metric 0 table 254 protocol 80" in out
    assert "203.0.113.7" not in out


def test_progress_counts_every_round(build) -> None:
    seen = []
    settings = PushSettings("false", dry=True)
    found = push(Fabric.load(build), "linux", settings, progress=lambda *step: seen.append(step))
    assert not found.good
    assert sorted(seen) == [(done, 13) for done in range(1, 14)]


def test_switches_that_do_not_answer(polarfab, build) -> None:
    words = ("push", build, "--target", "frr", "--run", "false", "--json")
    code, out, _ = polarfab(*words)
    found = json.loads(out)["switches"]
    assert code == 1
    assert [one["state"] for one in found] == ["failed"] * 13
    assert found[0]["error"].endswith("uname -n: exit 1")
    assert "/no/such" in polarfab(*words[:4], "--run", "/no/such")[2]


def test_an_answer_that_is_no_table(polarfab, build) -> None:
    """A shell that answers, but not with what was asked for."""
    for target in ("linux", "frr"):
        words = ("push", build, "--target", target, "--node", "3", "--dry-run")
        code, _, err = polarfab(*words, "--run", "echo hello", "--overrule", "names")
        assert code == 1
        assert err.startswith("3: an answer that cannot be read: ")
        assert "Traceback" not in err


def test_switches_that_fail_alike_are_told_once(polarfab, named) -> None:
    ssh = "sh -c 'echo ssh: to {address}: no route to {node} >&2; exit 255'"
    code, out, err = polarfab("push", named, "--target", "frr", "--run", ssh)
    assert (code, "push, target frr: 7 failed" in out) == (1, True)
    (line,) = err.splitlines()
    assert line.startswith("7 switches (n0, n1, n2, …): ")
    assert line.endswith("ssh: to ADDRESS: no route to SWITCH")


def test_a_number_is_not_taken_for_the_switch_of_that_name() -> None:
    """Without an inventory switches have numbers for names, and host names such as sw-1."""
    told = "no host sw-{}: exit 1"
    failed = [PushedSwitch(str(i), i, DEVICE, "failed", error=told.format(i)) for i in range(3)]
    assert PushReport("frr", tuple(failed)).causes == {"no host SWITCH: exit 1": ("0", "1", "2")}


def test_a_refused_policy_is_told_of_its_build(polarfab, build, tmp_path: Path) -> None:
    spec = "name: lab\ntopology: {family: polarfly, q: 3}\nrouting: {protect: link}\n"
    (tmp_path / "other.yaml").write_text(spec)
    assert polarfab("compile", tmp_path / "other.yaml", "-o", tmp_path / "o", "--quick")[0] == 0
    for words in ((build, "--from", tmp_path / "o"), (tmp_path / "o", "--from", build)):
        code, _, err = polarfab("push", *words, "--target", "eos", "--dry-run", "--run", "false")
        assert code == 2
        assert err.startswith(f"error: {tmp_path}/o: routing.protect: required none, as target eos")
