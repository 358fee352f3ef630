"""Maintenance of a switch of an eBGP fabric: the lines, and which paths they leave."""

import re

import networkx as nx
import pytest
import yaml
from click.testing import CliRunner

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.routed.bgp.drained import maintenance_lines
from inventory.problems import InputError
from polarfab.cli import cli
from polarfab.fabric import Fabric
from tests.compilers.readers.emitted import write
from tests.compilers.readers.test_bgp_reader import build_of
from tests.compilers.routed import agreed, routed
from tests.compilers.targets.path_vectors import PathVectors
from tests.vtysh import NEEDS_VTYSH, judged

BGP = {"routing": "bgp"}
PREPENDED = re.compile(r" set as-path prepend ((?:\d+ ?)+)$", re.M)


@pytest.mark.parametrize("parameters", [{"q": 3}, {"family": "oft", "q": 2}])
def test_others_go_around_and_none_loses_its_path(parameters):
    """By path lengths: any path around is shorter than one over the switch, which is let in."""
    build = routed(**parameters)
    graph = nx.Graph(build.topology.graph.edges().tolist())
    longest = 2 * build.topology.diameter + 2
    for drained in sorted(graph)[:5]:
        lines = maintenance_lines(agreed(build, BGP), "eos", {}, build.wiring.names[drained])
        more = len(PREPENDED.search("\n".join(lines))[1].split())
        around = dict(nx.all_pairs_shortest_path_length(graph.subgraph({*graph} - {drained})))
        away = nx.single_source_shortest_path_length(graph, drained)
        for s in around:
            for d in around:
                over = away[s] + away[d] + more
                assert around[s].get(d, over) <= longest
                if over == away[s] + away[d] + more and away[s] + away[d] <= longest - more:
                    assert over <= longest
                if d in around[s] and s != d:
                    assert around[s][d] < over


@pytest.mark.parametrize(
    ("name", "parameters", "some", "fewer"),
    [
        ("frr", {"family": "polarfly", "q": 3}, 12, 0),
        ("eos", {"family": "polarfly", "q": 3}, 12, 0),
    ],
)
def test_packets_loop_while_neighbours_take_old_paths(name, parameters, some, fewer, tmp_path):
    """Each knows of longer paths over a drained switch before others have told what they do now.

    A path over another neighbour is last among paths of one length.
    """
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump({"name": "x", "topology": parameters}))
    build = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    write(name, agreed(build, BGP), tmp_path / "out")
    for folder, expected in ((None, some), (tmp_path / "out", fewer)):
        assert loops(PathVectors(build, folder)) == expected


def loops(routers):
    """The loops, each of a drained switch and a destination, once its neighbours have chosen."""
    paths, found = routers.converged(), 0
    for drained in routers.graph:
        for to in set(routers.graph) - {drained}:
            first = {v: paths[v, to][1] for v in routers.graph if v != to}
            for v in set(routers.graph[drained]) - {to}:
                first[v] = routers.choice(v, to, paths, longer={drained})[1]
            found += len(list(nx.simple_cycles(nx.DiGraph(first.items()))))
    return found


@NEEDS_VTYSH
@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("name", ["frr", "sonic"])
def test_vtysh_takes_the_lines(name, end, tmp_path):
    build = build_of({"spread": True, "q": 3})
    lines = maintenance_lines(agreed(build, BGP), name, {}, build.wiring.names[3], end=end)
    assert any("network" in line for line in lines)
    file = tmp_path / "drain.conf"
    file.write_text("\n".join(lines) + "\n")
    assert judged(file) == (0, "", "")


def test_systems_say_families_in_their_words():
    build = build_of({"spread": True, "q": 3})
    for name, unicast in (("eos", ""), ("nxos", " unicast")):
        lines = maintenance_lines(agreed(build, BGP), name, {}, "3")
        at = lines.index(f" address-family ipv4{unicast}")
        assert lines[at : at + 3] == [lines[at], "  no network 100.127.0.4/32", " exit"]


def test_prefix_lists_of_eos_are_sections():
    """As its user manual and its configurations have them: no `seq` behind an IPv6 name."""
    build = build_of({"spread": True, "q": 3})
    lines, end = (
        maintenance_lines(agreed(build, BGP), "eos", {}, "3", end=end) for end in (False, True)
    )
    at = lines.index("ipv6 prefix-list own-ipv6")
    assert lines[at + 1].startswith(" seq 5 permit fd")
    assert lines[at + 2] == "exit"
    assert {"no ip prefix-list own-ipv4", "no ipv6 prefix-list own-ipv6"} <= {*end}


def test_the_end_takes_back_every_line():
    """What goes in comes out: each line of the end is `no` of one, or restores the address."""
    build = build_of({"spread": True, "q": 3})
    both = (maintenance_lines(agreed(build, BGP), "frr", {}, "3", end=end) for end in (False, True))
    begin, end = ({re.sub("^( *)no ", r"\1", line) for line in lines} for lines in both)
    longer = {line for line in begin if PREPENDED.match(line)}
    matches = {f" match {w} address prefix-list own-{f}" for w, f in WORDS}
    assert begin - end == longer | matches
    assert end - begin == {" set as-path prepend"}


WORDS = (("ip", "ipv4"), ("ipv6", "ipv6"))


@pytest.mark.parametrize(
    ("name", "control", "node", "wrong"),
    [
        ("junos", BGP, "3", "one of eos, frr, nxos, sonic"),
        ("frr", {}, "3", "static routes go around a switch"),
        ("frr", BGP, "0-1", "links and groups of routers cannot be drained"),
    ],
)
def test_what_cannot_be_is_refused(name, control, node, wrong):
    with pytest.raises(InputError, match=wrong):
        maintenance_lines(agreed(routed(q=3), control), name, {}, node)


def test_the_verb_prints_the_lines(tmp_path):
    Fabric.of(agreed(routed(q=2), BGP)).save(tmp_path / "b")
    words = ["drain", "3", "--build", str(tmp_path / "b"), "--target", "nxos"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == maintenance_lines(agreed(routed(q=2), BGP), "nxos", {}, "3")
    refusal = CliRunner().invoke(cli, words[:4]).exception
    assert str(refusal).startswith("--target: required a target, or `system:` in fabric.yaml")
