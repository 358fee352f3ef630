"""The commands of the manual that set a switch up, on Open vSwitch."""

import re
import shlex
from pathlib import Path

import pytest

from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.controller.makers import own_network
from tests.waiting import until

pytestmark = pytest.mark.live
PAGES = Path(__file__).parents[3] / "docs/how-to"
HIDDEN_PRIORITIES = re.compile(r"priority=(?:18\d{4}|\d{7,})\b")
"""Open vSwitch's rows for control over the fabric's own links (DESIGN, "In-Band Control")."""


def hidden_rows(ovs, bridge):
    return [
        row
        for row in ovs.appctl("bridge/dump-flows", bridge).splitlines()
        if HIDDEN_PRIORITIES.search(row)
    ]


@pytest.mark.parametrize(("page", "bridge"), [("controller.md", "s0"), ("runbooks.md", "s3")])
def test_a_host_cannot_flood_the_fabric_in_the_controllers_name(page, bridge, tmp_path):
    """Without disable-in-band one frame of a host circled for ever: 622 of 624 packets lost."""
    lines = re.findall(
        rf"^\$ ovs-vsctl (set bridge {bridge} .*)$", (PAGES / page).read_text(), re.M
    )
    with own_network(), PrivateOvs(tmp_path / "ovs") as ovs:
        for name in ("as-by-default", bridge):
            ovs.vsctl("add-br", name, "--", "set", "bridge", name, "datapath_type=netdev")
        for line in lines:
            ovs.vsctl(*shlex.split(line))
        for name in (bridge, "as-by-default"):
            ovs.vsctl("set-controller", name, "tcp:192.0.2.1:6653")
        until(lambda: hidden_rows(ovs, "as-by-default"))
        assert hidden_rows(ovs, bridge) == []
