"""Packets from hosts share ports as the classes say, and those in transit go minimally.

By the VRF of the hosts' port on eos, nxos and sonic, by a filter at that port on junos.
"""

from dataclasses import replace

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.routed import agreed
from tests.compilers.targets.makers import fabric
from tests.vtysh import NEEDS_VTYSH, judged

BUILDS = {
    "q=3": fabric(q=3, spread=True),
    "two hosts, IPv4": fabric(q=2, hosts=2, ipv6="", spread=True),
    "aggregates": fabric("polarstar", q=2, supernode="complete", degree=2, spread=True),
    "no hosts": fabric(q=2, hosts=0, spread=True),
}
ABLE = ("eos", "junos", "nxos", "sonic")
every = pytest.mark.parametrize("name", ABLE)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *((name, "two hosts, IPv4") for name in ABLE),
        ("eos", "q=3"),
        ("junos", "aggregates"),
        ("sonic", "aggregates"),
        ("nxos", "no hosts"),
    ],
)
def test_what_was_written_says_what_the_tables_say(name, case, tmp_path):
    """The reader follows packets from hosts into the VRF, or by the filter, and back to hosts."""
    target(name).render(BUILDS[case], tmp_path)
    report = target(name).check_emitted(BUILDS[case], tmp_path)
    assert (report.examples, report.passed) == ((), True)


@every
def test_golden(name, tmp_path, golden):
    build = replace(fabric(q=2, spread=True), identity="0" * 16)
    target(name).render(build, tmp_path, only=[3])
    for path in sorted((tmp_path / "3").iterdir()):
        golden(path.read_text(), f"entering_{path.name}")


@NEEDS_VTYSH
@pytest.mark.parametrize("case", ["q=3", "two hosts, IPv4"])
def test_vtysh_accepts_sonics_frr_conf(case, tmp_path):
    target("sonic").render(BUILDS[case], tmp_path, only=[0, 3])
    for path in tmp_path.glob("*/frr.conf"):
        assert judged(path) == (0, "", "")


def test_unequal_shares_are_refused(tmp_path):
    build = BUILDS["q=3"]
    weight = build.tables.classes.weight * np.array(
        [3] + [1] * (build.tables.classes.weight.shape[2] - 1), np.uint16
    )
    classes = replace(build.tables.classes, weight=weight)
    unequal = replace(build, tables=replace(build.tables, classes=classes))
    with pytest.raises(InputError, match="equal-cost, as target eos cannot do unequal shares"):
        target("eos").render(unequal, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_sonics_hosts_of_srv6_have_no_vrf(tmp_path):
    target("sonic").render(fabric(q=2, spread=True), tmp_path, options={"srv6": "host"})
    assert "Vrf" not in (tmp_path / "0" / "config_db.json").read_text()


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    """A fabric of q = 3 in both families, of nodes of type box."""
    folder = tmp_path_factory.mktemp("box")
    nodes = "".join(f"  - {{name: n{v}, type: box}}\n" for v in range(13))
    (folder / "inventory.yaml").write_text(
        "node_types:\n  box:\n    tables: {lpm_rows: 52}\n"
        f"    ports: [{{name: 'Ethernet{{}}', count: 5}}]\nnodes:\n{nodes}"
    )
    (folder / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 3}\ninventory: inventory.yaml\n"
        'routing: {balance: compact-valiant}\naddressing: {ipv6: "fd00::/48"}\n'
    )
    return compile_fabric(load_fabric(folder / "fabric.yaml"))


def limited(build, **limits):
    """The same with these limits."""
    (box,) = build.hardware.types
    hardware = replace(build.hardware, types=(replace(box, limits=limits),))
    return replace(build, hardware=hardware)


def test_at_every_hop_there_is_one_table(tmp_path):
    (tmp_path / "inventory.yaml").write_text(
        "node_types:\n  box:\n    tables: {lpm_rows: 9}\n"
        "    ports: [{name: 'Ethernet{}', count: 5}]\nnodes:\n"
        + "".join(f"  - {{name: n{v}, type: box}}\n" for v in range(9))
    )
    (tmp_path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: hyperx, sides: 3x3}\ninventory: inventory.yaml\n"
        "routing: {balance: ecmp, transit: ecmp}\n"
    )
    build = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    target("eos").check(agreed(limited(build, lpm_rows=9), {"routing": "bgp"}))


def test_a_node_type_without_room_for_both_vrfs(box):
    """In two VRFs and two families 12 other prefixes and a host; 4 classes share, by family."""
    target("eos").check(box)
    target("eos").check(limited(box, lpm_rows=52, groups=8, ecmp_width=4))
    with pytest.raises(InputError) as error:
        target("eos").check(limited(box, lpm_rows=51, groups=7, ecmp_width=3))
    what = "node_types.box.tables.{}: required at least {} for alternates on target eos, given {}"
    todo = " needs most; choose another type, a smaller fabric or balance: minimal"
    assert str(error.value).splitlines() == [
        what.format(*each) + todo
        for each in (
            ("lpm_rows", "52 routes in two VRFs", "51, too few at 13 nodes; n0"),
            ("groups", "8 ECMP groups", "7, too few at 9 nodes; n0"),
            ("ecmp_width", "4 members per ECMP group", "3, too few at 6 nodes; n2"),
        )
    ]
