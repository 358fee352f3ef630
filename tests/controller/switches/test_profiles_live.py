"""Real Open vSwitch with less than it can do: programs of other profiles, tables with a limit."""

import socket
import subprocess

import pytest

from compilers.tables.folders.build_folder import load
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.profiles import OVS
from compilers.targets.openflow.protocol import HEADER, MessageType, Multipart, header, message
from controller.openflow.multipart import part, request
from controller.openflow.switch_features import features, is_open_vswitch
from controller.switches.switch import FEATURE_REQUESTS
from tests.controller.makers import BRIDGES, POLARFAB, SWITCHES, leave, polarfab, rows

pytestmark = pytest.mark.live
OURS = [name for name in BRIDGES if name != "x"]


@pytest.fixture
def compiled(tmp_path):
    """Compiles ER_3 on nodes with these OpenFlow keys."""

    def compiled(keys):
        nodes = "".join(f"  - {{name: n{v}, type: leaf}}\n" for v in range(SWITCHES))
        leaf = f"{{ports: [{{count: 8}}], openflow: {keys}}}"
        (tmp_path / "inventory.yaml").write_text(f"node_types:\n  leaf: {leaf}\nnodes:\n{nodes}")
        (tmp_path / "fabric.yaml").write_text(
            "name: lab\ninventory: inventory.yaml\ntopology: {family: polarfly, q: 3}\n"
            "routing: {balance: compact-valiant, protect: link}\n"
        )
        words = [POLARFAB, "compile", tmp_path / "fabric.yaml", "-o", tmp_path / "build", "--quick"]
        said = subprocess.run(words, check=True, capture_output=True, text=True)
        return tmp_path / "build", said.stderr

    return compiled


def test_a_profile_of_the_inventory_is_what_a_switch_holds(compiled, switches, run):
    """Programmed on Ryu; os-ken puts right one switch that has lost its rows, and no other."""
    name = "few-buckets with tables=1"
    folder, said = compiled("{profile: few-buckets, tables: 1}")
    assert f"node type leaf, OpenFlow profile {name}: " in said
    controller = run(polarfab(folder, "ryu", "--no-discover"), bridges=OURS)
    status = controller.wait_for(SWITCHES, "complete", "profiles")
    assert set(status["profiles"].values()) == {name}
    assert status["errors"] == {}
    encoder = Encoder(load(folder))
    for vertex in range(SWITCHES):
        assert len(rows(switches, f"s{vertex}")) == encoder.row_count(vertex)
    controller.stop()
    before = rows(switches, "s3")
    switches.ofctl("del-flows", "s3")
    again = run(polarfab(folder, "os-ken", "--no-discover"), bridges=OURS)
    found = again.wait_for(SWITCHES, "complete")["differences"]
    lost = {"added": len(before), "changed": 0, "removed": 0, "none": SWITCHES - 1}
    assert found == lost
    assert rows(switches, "s3") == before
    again.stop()
    leave(switches, *OURS)


def said(ovs, bridge):
    """What a bridge says: who made it, its group and table features."""
    replies = []
    with socket.socket(socket.AF_UNIX) as sock, sock.makefile("rb") as answers:
        sock.connect(str(ovs.folder / f"{bridge}.mgmt"))
        sock.sendall(message(MessageType.HELLO, 0))
        for number, kind in enumerate((Multipart.DESC, *FEATURE_REQUESTS)):
            sock.sendall(request(kind, number))
            replies.append(b"")
            more = True
            while more:
                head = answers.read(HEADER.size)
                kind, length, xid = header(head)
                told = head + answers.read(length - len(head))
                if kind == MessageType.MULTIPART_REPLY:
                    _, body, last = part(told)
                    replies[xid], more = replies[xid] + body, not last
    return replies


def test_open_vswitch_says_that_it_can_do_everything(switches):
    """As the controller takes it to, which therefore does not ask it."""
    made, groups, tables = said(switches, "s4")
    assert is_open_vswitch(made)
    able, limits = features(groups, tables)
    assert able == OVS
    assert min(limits.rows.values()) == 1_000_000
