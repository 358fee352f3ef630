"""FRR 10 and BIRD 3 of newer Debian releases, unpacked: sessions, tables, and what a push reads."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.frr import routing_tables
from compilers.targets.target_lookup import target
from mininet_scenarios.ovs.openvswitch import NAMESPACES
from tests.compilers.routed import agreed
from tests.debian_root import unpacked

pytestmark = [pytest.mark.live, pytest.mark.long]
SPEC = """name: lab
topology: {family: polarfly, q: 2}
routing: {balance: compact-valiant}
addressing: {ipv6: "fd00::/48"}
"""


@pytest.fixture(scope="module", params=["trixie", "forky"])
def seen(request, tmp_path_factory):
    """What live_newer.py saw with the programs of a Debian release."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "fabric.yaml").write_text(SPEC)
    build = compile_fabric(load_fabric(folder / "fabric.yaml"))
    options = {"routing": "bgp", "bfd": "on", "gtsm": "on"}
    target("frr").render(agreed(build, options), folder / "out")
    root = unpacked(request.param, ["frr", "bird3", "iproute2"], folder)
    script = "tests.compilers.targets.live_newer"
    done = subprocess.run(
        [*NAMESPACES, "--mount", sys.executable, "-m", script, root, folder / "out" / "1"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr[-4000:]
    target("sonic").render(agreed(build, {"routing": "bgp"}), folder / "sonic")
    shutil.copy(folder / "sonic" / "1" / "frr.conf", root / "sonic.conf")
    words = ("chroot", root, "vtysh", "-C", "-f", "/sonic.conf")
    checked = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return json.loads(done.stdout) | {"sonic": (checked.returncode, checked.stderr)}


def test_the_releases_are_newer(seen):
    assert int(seen["version"].split()[1].split(".")[0]) >= 10
    assert int(seen["bird"].split()[1].split(".")[0]) >= 3


def test_a_session_with_another_implementation_gtsm_and_bfd(seen):
    """BFD over one hop (RFC 5881): FRR's takes several if TTL security comes after the session."""
    (session,) = seen["bfd"]
    assert (session["peer"], session["status"], session["multihop"]) == ("fe80::b", "up", False)
    ours, theirs = seen["routes"]
    assert ours["10.0.0.0/30"] == theirs["10.0.0.4/30"] == "eth1"


def test_the_tables_of_newer_releases_are_read(seen):
    """`show ip route table all json`, and below a key a VRF as `vrf all` has it since 10.1."""
    every = json.loads(seen["every"])
    assert set(every) == {"default"}
    decoder, text, documents = json.JSONDecoder(), seen["tables"], []
    while text.lstrip().startswith("{"):
        document, end = decoder.raw_decode(text := text.lstrip())
        documents.append(document)
        text = text[end:]
    for shown in (documents, [every]):
        assert all(map(routing_tables.fits, shown))
        held = routing_tables.read(shown).tables()
        assert held["main"]["10.0.0.0/30"] == ((("fe80::b", "eth1", 1),),)


def test_the_parser_takes_the_file_for_sonic(seen):
    """SONiC ships FRR 10.5, which is between the two."""
    assert seen["sonic"] == (0, "")


def test_a_push_has_nothing_to_type(seen):
    """FRR shows what it was given in the forms that the push compares."""
    assert seen["plan"] == []


def test_drift_and_refused_lines(seen):
    assert {"ip prefix-list fabric-ipv4 seq 20 permit any", "route-map announced-ipv4 deny 1"} <= {
        *seen["kept"]
    }
    unknown, number, length = seen["refused"]
    assert "`bogus x`: unknown command" in unknown
    assert "the line `router bgp 64513`: BGP instance" in number
    assert "Invalid prefix range" in length
