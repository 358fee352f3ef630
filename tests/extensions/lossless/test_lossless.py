"""Lossless priorities: the channels of the emitted text, its buffers, and what is refused."""

import json
import shutil
from dataclasses import replace
from graphlib import CycleError
from ipaddress import ip_interface

import pytest

from compilers.targets.routed.interfaces import PhysicalPort
from compilers.targets.target_lookup import target
from compilers.wiring.node_type_facts import BufferFacts
from extensions.lossless.sonic_buffers import headroom
from extensions.lossless.sonic_priorities import MAPS, PRIORITY_TABLES
from inventory.problems import InputError
from tests.extensions.lossless.lossless_fabrics import (
    BUFFER,
    POLARFLY,
    compiled,
    order,
    rendered_once,
    system,
)

OTHERS = [
    ("hop", "compact-valiant", POLARFLY),
    ("valley", "compact-valiant", "{family: oft, q: 2}"),
    ("pairs", "minimal", "{family: oft, q: 2}"),
]
"""What three priorities are enough for."""
SMALL_BUFFER = (
    BUFFER.replace("33554432", "1000000").replace("1048576", "1000").replace("2097152", "2000")
)
SCHEMES = [("hop", "minimal"), ("valley", "minimal"), ("valley", "compact-valiant")]

rendered = pytest.fixture(scope="module")(rendered_once)


@pytest.mark.parametrize(("scheme", "balance"), [*SCHEMES, ("pairs", "minimal")])
def test_what_is_emitted_reads_back(scheme, balance, rendered):
    build, out = rendered(scheme, balance)
    report = system(scheme).check_emitted(build, out, {"lossless": scheme})
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered > 0


@pytest.mark.parametrize(("scheme", "balance", "topology"), OTHERS)
def test_three_priorities(scheme, balance, topology, tmp_path):
    buffer = BUFFER.replace("[3, 4]", "[3, 4, 2]")
    build = compiled(tmp_path / "in", balance, buffer=buffer, topology=topology)
    system(scheme).render(build, tmp_path / "out", options={"lossless": scheme})
    report = system(scheme).check_emitted(build, tmp_path / "out", {"lossless": scheme})
    assert (report.differences, report.examples) == (0, ())


def test_classes_that_drop_have_their_usual_dscp(rendered):
    """Best effort 0, congestion notifications 48; control (CS7) 56, a class that none enters."""
    build, out = rendered("hop", "minimal")
    tree = json.loads((out / build.wiring.names[3] / "config_db.json").read_text())
    marked = tree["TC_TO_DSCP_MAP"]["LOSSLESS_NEXT"]
    assert [marked[name] for name in ("0", "6", "7")] == ["0", "48", "56"]
    taken = tree["DSCP_TO_TC_MAP"]["LOSSLESS_NEXT"]
    assert [taken[dscp] for dscp in ("0", "48", "56")] == ["0", "6", "0"]


@pytest.mark.parametrize("scheme", ["hop", "valley", "pairs"])
def test_every_map_is_that_of_a_port(scheme, rendered):
    """SONiC creates every map in the chip, and a chip for which `hop` is may have room for one."""
    _, out = rendered(scheme, "minimal")
    for file in out.glob("*/config_db.json"):
        tree = json.loads(file.read_text())
        for key, table in MAPS.items():
            assert {*tree[table]} == {bound[key] for bound in tree["PORT_QOS_MAP"].values()}, table


class Text:
    """Packets followed through the text alone: each wait for a buffer, by link and priority."""

    def __init__(self, out):
        self.trees = {f.name: json.loads((f / "config_db.json").read_text()) for f in out.iterdir()}
        self.owner = {
            key.partition("|")[2].partition("/")[0]: (node, key.partition("|")[0])
            for node, tree in self.trees.items()
            for key in tree["INTERFACE"]
            if key.endswith("/31")
        }
        self.home = {
            str(ip_interface(key.partition("|")[2]).network): node
            for node, tree in self.trees.items()
            for key in tree["VLAN_INTERFACE"]
            if "." in key
        }
        self.waits = {}

    def alternates(self, node, prefix, entering):
        """(next node, its port, own port) for every path of a prefix."""
        tree = self.trees[node]["STATIC_ROUTE"]
        route = tree.get(f"Vrf-hosts|{prefix}") if entering else None
        route = route or tree[f"default|{prefix}"]
        for gateway, port in zip(
            *(route[k].split(",") for k in ("nexthop", "ifname")), strict=True
        ):
            yield *self.owner[gateway], port

    def classified(self, node, port, dscp):
        """Class and PFC priority of a packet that comes in."""
        tree = self.trees[node]
        bound = tree["PORT_QOS_MAP"][port]
        number = tree["DSCP_TO_TC_MAP"][bound["dscp_to_tc_map"]][dscp]
        group = tree["TC_TO_PRIORITY_GROUP_MAP"][bound["tc_to_pg_map"]][number]
        assert group in bound["pfc_enable"].split(",")
        assert f"{port}|3-4" in tree["BUFFER_PG"]
        return number, group

    def leaves(self, node, port, number):
        """The PFC priority that holds a packet's queue, and its DSCP on the link."""
        tree = self.trees[node]
        bound = tree["PORT_QOS_MAP"][port]
        queue = tree["TC_TO_QUEUE_MAP"][bound["tc_to_queue_map"]][number]
        held = tree["MAP_PFC_PRIORITY_TO_QUEUE"][bound["pfc_to_queue_map"]]
        (priority,) = [p for p, q in held.items() if q == queue]
        return priority, tree["TC_TO_DSCP_MAP"][bound["tc_to_dscp_map"]][number]

    def follow(self, node, port, dscp, prefix, entering=True, buffer=None):
        if self.home[prefix] == node:
            return
        number, group = self.classified(node, port, dscp)
        assert buffer is None or buffer[1] == group  # both ends mean the same priority
        for far, far_port, out in self.alternates(node, prefix, entering):
            priority, mark = self.leaves(node, out, number)
            following = ((node, out), priority)
            self.waits.setdefault(following, set())
            if buffer:
                self.waits[buffer].add(following)
            self.follow(far, far_port, mark, prefix, False, following)


@pytest.mark.parametrize(("scheme", "balance"), SCHEMES)
def test_the_waits_of_the_text_have_no_cycle(scheme, balance, rendered):
    text = Text(rendered(scheme, balance)[1])
    for node in text.trees:
        host = next(p for p, m in text.trees[node]["PORT_QOS_MAP"].items() if is_host(m))
        for prefix in text.home:
            text.follow(node, host, "26", prefix)
    assert {priority for _, priority in text.waits} == {"3", "4"}
    assert len(order(text.waits)) == len(text.waits)
    single = {link: {w for w, _ in after} for (link, _), after in text.waits.items()}
    for (link, _), after in text.waits.items():
        single[link] |= {following for following, _ in after}
    with pytest.raises(CycleError):
        order(single)


def is_host(bound):
    return bound["dscp_to_tc_map"] == "LOSSLESS_HOST"


def changes():
    """(what, change of the tables of a switch) that the reader must see."""

    def put(table, name, key, value):
        return lambda tree: tree[table][name].update({key: value})

    yield "queue one lower", put("TC_TO_QUEUE_MAP", "LOSSLESS_NEXT", "1", "3")
    yield "mark not moved on", put("TC_TO_DSCP_MAP", "LOSSLESS_NEXT", "1", "26")
    yield "best effort in a lossless queue", put("TC_TO_QUEUE_MAP", "LOSSLESS_NEXT", "0", "3")
    yield "pause of another queue", put("MAP_PFC_PRIORITY_TO_QUEUE", "LOSSLESS", "3", "4")
    yield "no PFC", put("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3")
    yield (
        "map of a host's port",
        put("PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map", "LOSSLESS_HOST"),
    )
    yield "another map", put("PORT_QOS_MAP", "Ethernet0", "dot1p_to_tc_map", "AZURE")
    yield (
        "a port more",
        lambda t: t["PORT_QOS_MAP"].update(Ethernet28=t["PORT_QOS_MAP"]["Ethernet0"]),
    )
    yield "a buffer less", lambda t: t["BUFFER_PG"].pop("Ethernet4|3-4")
    yield "a queue that drops", put("BUFFER_PROFILE", "egress_lossless_profile", "static_th", "9")
    yield (
        "a group without headroom",
        lambda t: [profile.pop("xoff", None) for profile in t["BUFFER_PROFILE"].values()],
    )
    yield "more memory than there is", put("BUFFER_POOL", "egress_lossless_pool", "size", "999")


def harmless():
    """Changes that no channel minds."""

    def put(table, name, key, value):
        return lambda tree: tree[table][name].update({key: value})

    yield "no ECN", put("WRED_PROFILE", "LOSSLESS", "ecn", "ecn_none")
    yield "no watchdog", lambda t: t.pop("PFC_WD")


@pytest.mark.parametrize(("what", "change"), [*changes(), *harmless()])
def test_a_wrong_table_is_seen(what, change, rendered, tmp_path):
    build, out = rendered("hop", "minimal")
    vertex = 3
    node = build.wiring.names[vertex]
    (tmp_path / node).mkdir()
    (tmp_path / node / "frr.conf").write_text((out / node / "frr.conf").read_text())
    tree = json.loads((out / node / "config_db.json").read_text())
    change(tree)
    (tmp_path / node / "config_db.json").write_text(json.dumps(tree, indent=2))
    report = target("sonic").check_emitted(build, tmp_path, {"lossless": "hop"}, only={vertex})
    assert report.differences > 0, what
    assert all(e.file.startswith(str(tmp_path / node)) for e in report.examples)


@pytest.mark.parametrize("word", ["dscp_to_tc_map", "tc_to_queue_map", "tc_to_dscp_map"])
def test_a_map_of_ports_that_lead_the_other_way_is_seen(word, rendered, tmp_path):
    build, out = rendered("valley", "compact-valiant")
    shutil.copytree(out / build.wiring.names[6], tmp_path / build.wiring.names[6])
    file = tmp_path / build.wiring.names[6] / "config_db.json"
    text = file.read_text()
    other = {"LOSSLESS_SAME": "LOSSLESS_NEXT", "LOSSLESS_NEXT": "LOSSLESS_SAME"}
    seen = set()
    for port, bound in json.loads(text)["PORT_QOS_MAP"].items():
        if bound[word] in other:
            seen.add(bound[word])
            tree = json.loads(text)
            tree["PORT_QOS_MAP"][port][word] = other[bound[word]]
            file.write_text(json.dumps(tree, indent=2))
            report = target("sonic").check_emitted(build, tmp_path, {"lossless": "valley"}, {6})
            assert report.differences > 0, (port, bound[word])
    assert seen == {*other}


def test_priorities_that_were_not_asked_for_are_a_fault(rendered):
    build, out = rendered("hop", "minimal")
    report = target("sonic").check_emitted(build, out, only={0})
    says = {example.says.removeprefix("unexpected: ") for example in report.examples}
    assert {"BUFFER_PG", "DSCP_TO_TC_MAP"} < says
    assert report.differences == len(PRIORITY_TABLES)


def test_headroom():
    """100 Gb/s are 12.5 bytes in a nanosecond; cells of 256 bytes hold frames of 64."""
    buffer = BufferFacts((3,), 1, 256, 99, 1000, 1, 1, 1)
    port = PhysicalPort("", speed=100, mtu=9100)
    # 99 m there and back take 1,000 ns: 25,000 bytes in 2,000 ns, behind a packet of 9,122 that the
    # other end sends, are 534 frames of 64; 36 cells hold the packet that this end sends.
    assert headroom(port, buffer) == (36 + 534) * 256
    assert headroom(port, replace(buffer, cable=198)) == (36 + 729) * 256
    # Of cells of 80 bytes a frame of 81 takes two.
    assert headroom(port, replace(buffer, cell=80)) == (115 + 843) * 80


@pytest.mark.parametrize(
    ("given", "scheme", "said"),
    [
        (
            {"buffer": "units: 1"},
            "hop",
            "node_types.box.buffer: required priorities, size, cell, cable, reaction, ecn_min, "
            "ecn_max and ecn_percent, for lossless priorities, given nothing; "
            "take them from the switch's data sheet (docs/reference/inventory.md)",
        ),
        (
            {"balance": "compact-valiant"},
            "hop",
            "routing.balance: required paths that need no more than 2 of the node types' "
            "priorities with lossless=hop, given compact-valiant, which needs 3; choose the scheme "
            "valley or balance: minimal, or list more in node_types.….buffer.priorities",
        ),
        (
            {"balance": "compact-valiant"},
            "pairs",
            "routing.balance: required minimal: packets of a pair keep one priority, so they need "
            "one path, given compact-valiant",
        ),
        *(
            (
                {"balance": "spread"},
                scheme,
                "set lossless: required off with marked packets, whose VLANs have no priorities "
                f"of their own, given {scheme}; choose balance: {balance}",
            )
            for scheme, balance in (("pairs", "minimal"), ("valley", "compact-valiant"))
        ),
        (
            {"buffer": BUFFER.replace("[3, 4]", "[3]")},
            "pairs",
            "routing.balance: required paths that need no more than 1 of the node types' "
            "priorities with lossless=pairs, given minimal, which needs 2; list more in "
            "node_types.….buffer.priorities",
        ),
        (
            {"port": "speed: 100, lanes: 4"},
            "hop",
            "node_types.box.ports: required speed and mtu of every port in use, for headroom, "
            "given none for Ethernet0",
        ),
        (
            {"buffer": SMALL_BUFFER},
            "hop",
            "node_types.box.buffer.size: required more than 1,803,264 bytes, headroom and a "
            "packet for each priority of 6 ports, given 1,000,000; choose a shorter "
            "cable, fewer priorities or another type",
        ),
    ],
)
def test_what_a_node_type_lacks_is_asked_for_by_key(given, scheme, said, tmp_path):
    with pytest.raises(InputError) as error:
        system(scheme).render(
            compiled(tmp_path / "in", **given), tmp_path / "out", options={"lossless": scheme}
        )
    assert str(error.value) == said
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_not_with_segments_of_hosts(rendered):
    build, out = rendered("hop", "minimal")
    with pytest.raises(InputError, match="set lossless: required off with srv6"):
        target("sonic").render(build, out, options={"lossless": "hop", "srv6": "host"})
