"""What a push reads of a running FRR, and what it makes of lines that FRR refuses.

One switch with the real daemons and vtysh, in a namespace without neighbours. What a test types is
taken away again by the push that it looks at.
"""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.devices.device_shell import DeviceError, DeviceShell
from compilers.targets.devices.router_device import LINES, NAMES, PORTS_SHUT
from compilers.targets.frr.device import FrrDevice
from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.target_lookup import target
from controller.devices.device_push import DevicePush, PushSettings
from mininet_scenarios.engines.frr_router import FrrRouter
from mininet_scenarios.machine.network_namespace import NetworkNamespace
from tests.compilers.routed import agreed

pytestmark = pytest.mark.live
NODE = "1"
CONTROL = {"routing": "bgp", "bfd": "on"}
SPEC = """name: lab
topology: {family: polarfly, q: 2}
addressing: {ipv6: "fd00::/48"}
"""
REACH = """#!/bin/sh
export PATH="{folder}/bin:$PATH"
exec nsenter -t {pid} -n sh -c "$1"
"""
VTYSH = """#!/bin/sh
exec {vtysh} --vty_socket {daemons} --config_dir {daemons} "$@"
"""


def rendered(folder, **more):
    """A build and its rendering; more: lines of fabric.yaml."""
    text = SPEC + "".join(f"{key}: {value}\n" for key, value in more.items())
    (folder / "fabric.yaml").write_text(text)
    build = agreed(compile_fabric(load_fabric(folder / "fabric.yaml")), CONTROL)
    target("frr").render(build, folder / "out")
    return build, folder / "out"


def script(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Switch:
    """A switch that runs the rendered configuration."""

    def __init__(self, folder):
        folder.chmod(0o755)
        self.folder, self.daemons = folder, folder / "daemons"
        self.build, self.out = rendered(folder)
        self.daemons.mkdir()
        self.daemons.chmod(0o755)
        self.space = NetworkNamespace()
        for number in range(1, 5):
            self.space.run("ip", "link", "add", f"eth{number}", "type", "veth")
        self.router = FrrRouter(self.space, self.build, int(NODE), self.out, self.daemons)
        self.router.begin()
        here = self.daemons / NODE
        (here / "vtysh.conf").write_text("service integrated-vtysh-config\n")
        (here / "frr.conf").write_text("")
        for name in ("vtysh.conf", "frr.conf"):
            shutil.chown(here / name, "frr", "frr")
        (folder / "etc").mkdir()
        (folder / "etc" / "frr").symlink_to(here)
        words = {"folder": folder, "pid": self.space.pid, "daemons": here}
        script(folder / "bin" / "vtysh", VTYSH.format(vtysh=shutil.which("vtysh"), **words))
        self.reach = script(folder / "reach", REACH.format(**words))

    def device(self, out=None, **more):
        pools = tuple(fabric_pools(self.build.addressing))
        shell = DeviceShell((str(self.reach),))
        return FrrDevice(
            shell, (out or self.out) / NODE, str(self.folder / "etc"), pools, bgp=True, **more
        )

    def pushed(self, out=None):
        """The outcome of a push to it."""
        names = frozenset({NAMES})  # the machine's own
        settings = PushSettings(str(self.reach), str(self.folder / "etc"), overrule=names)
        push = DevicePush(self.build, "frr", {}, out or self.out, settings)
        (one,) = push.run([NODE]).switches
        return one

    def typed(self, *lines):
        """What an operator types."""
        words = [word for line in ("configure", *lines) for word in ("-c", line)]
        self.router.vtysh(*words)

    def running(self):
        return self.device().running()

    def close(self):
        for file in self.daemons.glob("*/*.pid"):
            os.kill(int(file.read_text()), signal.SIGKILL)
        self.space.process.kill()
        self.space.process.wait()


@pytest.fixture(scope="module")
def switch():
    """A running switch for all tests of this module."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # its daemons are a user of their own
        switch = Switch(Path(folder))
        yield switch
        switch.close()


EXTRA = {
    "ip prefix-list fabric-ipv4 seq 20 permit any": (),
    "ipv6 prefix-list fabric-ipv6 seq 20 permit any": (),
    "bgp as-path access-list near seq 20 permit .*": (),
    "route-map announced-ipv4 deny 1": (),
    "ip address 10.9.0.5/30": ("interface eth4",),
    "bgp bestpath as-path multipath-relax": (ROUTER := "router bgp 4200000001",),
    "neighbor fabric allowas-in": (ROUTER, "address-family ipv4 unicast"),
    "match ip next-hop address 10.9.0.5": ("route-map fabric-ipv4 permit 20",),
}
"""Lines beyond the rendered ones, each with the heads of its sections."""


def test_what_is_more_than_the_fabrics_is_named_and_goes_where_asked(switch):
    for line, sections in EXTRA.items():
        switch.typed(*sections, line)
    plan = switch.device().plan()
    assert not plan.remove
    assert {": ".join((*sections, line)) for line, sections in EXTRA.items()} == set(plan.kept)
    overruling = switch.device(overrule=frozenset({LINES}))
    overruling.configure(overruling.plan().remove)
    assert not switch.device().plan().kept
    assert not [line for line in EXTRA if f"{line}\n" in switch.running()]


def test_another_entry_of_one_number_is_replaced(switch):
    """It is a line to type, and no line of others."""
    wrong = ["ip prefix-list fabric-ipv4 seq 5 permit any", "route-map announced-ipv4 deny 10"]
    switch.typed(*wrong)
    plan = switch.device().plan()
    assert not plan.kept
    switch.device().configure([line for line in plan.add if not line.startswith("-")])
    assert not [line for line in wrong if f"{line}\n" in switch.running()]


def test_shutdown_in_vtysh_goes_where_ports_are_opened(switch):
    switch.typed("interface eth2", "shutdown")
    assert switch.device().plan().shut == {"eth2"}
    opening = switch.device(overrule=frozenset({PORTS_SHUT}))
    lines = [line for line in opening.plan().add if not line.startswith("-")]
    opening.configure(lines)
    assert "shutdown" not in switch.running()
    assert not switch.device().plan().shut


def test_another_as_number_is_refused_before_anything_is_typed(switch, tmp_path):
    before = switch.running()
    _, out = rendered(tmp_path, base="{asn: 64512}")
    with pytest.raises(
        DeviceError, match="required the AS number 64513 of the build, given 420000"
    ):
        switch.device(out).plan()
    assert switch.running() == before


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["router bgp 64513", " bgp router-id 192.0.2.1"],
            "`router bgp 64513`: BGP (is|instance name)",
        ),
        (["bogus x"], "`bogus x`: unknown command"),
        (["ip prefix-list x seq 5 permit 10.0.0.0/8 ge 7"], "Invalid prefix range"),
        ([ROUTER, " neighbor 10.0.0.5 remote-as 4"], "Can not configure the local system"),
    ],
)
def test_a_line_that_frr_does_not_take_is_told(switch, lines, said):
    with pytest.raises(DeviceError, match=said):
        switch.device().configure(lines)


def test_nothing_is_saved_where_a_line_was_not_taken(switch, tmp_path):
    """A daemon refuses it, so that the parser alone does not see it."""
    folder = shutil.copytree(switch.out, tmp_path / "out")
    file = folder / NODE / "frr.conf"
    line = " neighbor 10.0.0.5 remote-as 4\n"
    file.write_text(file.read_text().replace(" bgp router-id", f"{line} bgp router-id"))
    one = switch.pushed(folder)
    assert one.state == "failed"
    assert f"FRR has not taken the line `{line.strip()}`: Can not configure the local" in one.error
    assert (switch.daemons / NODE / "frr.conf").read_text() == ""


def test_one_push_at_a_time(switch):
    first, second = switch.device(), switch.device()
    first.lock("anna at desk")
    with pytest.raises(DeviceError, match=r"required no other push .*, given one by anna at desk;"):
        second.lock("bert")
    one = switch.pushed()
    assert (one.state, "given one by anna at desk" in one.error) == ("failed", True)
    first.unlock()
    second.lock("bert")
    second.unlock()
