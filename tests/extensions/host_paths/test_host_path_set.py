"""Path sets of a build: equal to those from coordinates, followed through the switches' files."""

import random
from itertools import pairwise, permutations

import pytest

from compilers.planes import compile_planes
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target
from extensions.host_paths.host_path_set import Carriers, host_paths
from extensions.host_paths.localisation import Probing
from extensions.host_paths.path_sets import PolarityGraph, path_set
from extensions.host_paths.path_texts import fabric_document, frr_lines, linux_batch
from inventory.problems import InputError
from tests.compilers.damaged_planes import damaged_planes
from tests.extensions.host_paths.read_srv6 import cables, carried, read_switch, usids


def chance(seed):
    """The same chance in every run."""
    return random.Random(seed)  # noqa: S311 - nothing secret


def compiled(topology, **more):
    """The builds of all planes, with an IPv6 pool."""
    addressing = {"ipv4": "10.0.0.0/8", "ipv6": "fd00::/48"}
    return compile_planes(
        load_fabric({"name": "lab", "topology": topology, "addressing": addressing, **more})
    )


def polarfly(q, **more):
    return compiled({"family": "polarfly", "q": q}, **more)


@pytest.mark.parametrize("q", [2, 3, 4, 7, 9])
def test_a_host_computes_the_paths_of_the_build(q):
    builds = polarfly(q, planes=2)
    fabric, order = PolarityGraph(q), q * q + q + 1
    pairs = list(permutations(range(order), 2))
    for s, d in pairs if q < 4 else chance(q).sample(pairs, 40):
        found = host_paths(builds, s, d, 4 * q)
        assert list(found.paths) == path_set([fabric] * 2, s, d, 4 * q)
        assert set(found.weights) == {1}


def test_polarstar_has_disjoint_paths_of_few_links():
    star = {"family": "polarstar", "q": 3, "supernode": "inductive-quad", "degree": 3}
    builds = compiled(star)
    far = builds[0].wiring.far
    for s, d in chance(1).sample(list(permutations(range(len(far)), 2)), 40):
        paths = host_paths(builds, s, d, 12).paths
        assert sum(path.disjoint for path in paths) > 2
        used = set()
        for path in paths:
            assert all(b in far[a] for a, b in pairwise(path.nodes))
            assert (path.nodes[0], path.nodes[-1], len(path.nodes) <= 5) == (s, d, True)
            links = set(map(frozenset, pairwise(path.nodes)))
            assert not path.disjoint or not links & used
            used |= links


@pytest.mark.parametrize("decap", ["host", "switch"])
def test_carriers_lead_along_their_paths_by_the_files_of_switches(decap, tmp_path):
    """By a reader of its own, which knows only what target srv6 wrote."""
    (build,) = polarfly(3)
    target("srv6").render(build, tmp_path, options={"decap": decap})
    tables = [read_switch(tmp_path / name) for name in build.wiring.names]
    cable, seen = cables(build), 0
    for s, d in permutations(range(13), 2):
        found = host_paths([build], s, d, 12, options={"decap": decap})
        for path in found.paths:
            nodes, left = carried(cable, tables, s, usids(found.carrier(path)))
            assert [s, *nodes] == list(path.nodes)
            assert left == (0xA000 if decap == "host" else 0x1001 + d, 0xE000)
            seen += 1
    assert seen > 1200


def test_a_link_down_drops_the_values_that_need_it():
    builds = polarfly(5, planes=2)
    before = host_paths(builds, "h3", "h22", 12)
    gone = before.paths[3]
    names = builds[gone.plane].wiring.names
    link = "-".join(names[v] for v in gone.nodes[1:3])
    now = host_paths(builds, "h3", "h22", 12, failures=[link])
    assert now.dropped == ((3, gone),)
    assert [i for i, (a, b) in enumerate(zip(before.paths, now.paths, strict=True)) if a != b] == [
        3
    ]
    assert now.as_dict()["dropped"] == [{"entropy": 3, **before.shown(gone)}]
    whole = host_paths(builds, 3, 22, 12, failures=[names[gone.nodes[1]]])
    assert all(gone.nodes[1] not in p.nodes for p in whole.paths if p.plane == gone.plane)
    with pytest.raises(InputError, match="a path from h3 to h22 that lives, given 22 down"):
        host_paths(polarfly(5), 3, 22, 12, failures=["22"])


def test_the_minimal_paths_share_what_the_spec_gives_them():
    routing = {"balance": "compact-valiant", "minimal_share": "2.5/(q+1.5)"}
    found = host_paths(polarfly(3, routing=routing), 0, 2, 4)
    assert found.weights == (15, 4, 4, 4)
    large = host_paths(polarfly(3, routing=routing | {"minimal_share": "0.999"}), 0, 2, 4)
    assert large.weights == (100, 1, 1, 1)


def test_wrong_words_are_told():
    builds = polarfly(3, planes=2)
    for words, told in (
        ((0, 0), "hosts of two switches, given 0 and 0, both at p1-0"),
        (("h0", "h99"), "required a node, a vertex number, a host or an address"),
    ):
        with pytest.raises(InputError, match=told):
            host_paths(builds, *words, 4)
    with pytest.raises(InputError, match="planes: required planes from 1 to 2, given 3"):
        host_paths(builds, 0, 1, 4, planes=[3])
    with pytest.raises(InputError, match="required a node"):
        host_paths(builds, 0, 1, 4, failures=["x-y"])
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
    with pytest.raises(InputError, match="an IPv6 pool"):
        host_paths(compile_planes(load_fabric(spec)), 0, 1, 4)


def test_an_address_names_its_host():
    builds = polarfly(2, planes=2, hosts_per_node=2)
    for word in ("h3-1", "10.0.0.27", "fd00:0:0:3::3", "fd00:0:0:8003::3"):
        assert host_paths(builds, "h0-0", word, 1).destination.name == "h3-1"
    for word in ("3", "p2-3", "fd00:0:0:3::1"):
        assert host_paths(builds, "h0-0", word, 1).destination.name == "h3-0"
    with pytest.raises(InputError, match=r"with a port to the fabric, given fd00:0:0:3::7;"):
        host_paths(builds, "h0-0", "fd00:0:0:3::7", 1)


def test_a_host_takes_only_planes_that_it_has_a_port_to(tmp_path):
    builds = damaged_planes(tmp_path, 2)
    used = {
        word: {path.plane for path in host_paths(builds, "h0-0", word, 4).paths}
        for word in ("h3-0", "h3-1", "h5-0", "p2-5")
    }
    assert used == {"h3-0": {0, 1}, "h3-1": {0}, "h5-0": {0}, "p2-5": {0}}
    with pytest.raises(InputError, match="planes: required two hosts with ports to one plane"):
        host_paths(builds, "h0-0", "h3-1", 4, planes=[2])
    probes = Probing.of(builds).probes
    assert all(5 not in probe.nodes for probe in probes if probe.plane == 1)


def test_what_iproute2_loads():
    builds = polarfly(3, planes=2, hosts_per_node=2)
    found = host_paths(builds, "h0-0", "h2-1", 6)
    lines = [line.split() for line in linux_batch(found)][1:]
    assert [words[2:] for words in lines[:4:2]] == [
        ["fc00::/32", "via", "fd00::1", "dev", "eth0", "protocol", "80"],
        ["fc00:1::/32", "via", "fd00:0:0:8000::1", "dev", "eth1", "protocol", "80"],
    ]
    assert [words[2:4] for words in lines[1:4:2]] == [
        ["local", f"fc00:{block}:a000:e000::/64"] for block in (0, 1)
    ]
    lines = lines[4:]
    routes = [
        (words[words.index("segs") + 1], words[words.index("dev") + 1]) for words in lines[:-2]
    ]
    assert routes == [(found.carrier(path), f"eth{path.plane}") for path in found.paths]
    for path, (carrier, _) in zip(found.paths, routes, strict=True):
        assert carrier.startswith(f"fc00:{path.plane:x}:")
        assert ":a001:e000" in carrier
    assert lines[-1][:3] == ["route", "replace", "fd00:0:0:2::3/128"]
    assert lines[-1][4] == lines[-2][3]
    assert [each.split(",")[0] for each in lines[-2][5].split("/")] == [w[3] for w in lines[:-2]]
    large = host_paths(polarfly(7, planes=3), 0, 9, 121)
    with pytest.raises(InputError, match="at most 120 paths"):
        list(linux_batch(large))


def test_what_frr_loads():
    found = host_paths(polarfly(3), 0, 2, 3, options={"interface": "ens3"})
    path, first = list(frr_lines(found))[1:3]
    assert path == "ipv6 route fc00::/32 fd00::1 ens3\n"
    assert first == (
        "ipv6 route fd00:0:0:2::2/128 fd00::1 ens3 segments fc00:0:1005:1003:a000:e000:: "
        "encap-behavior H_Encaps_Red weight 1\n"
    )


def test_the_fabric_json():
    """The keys and counts of q13-fabric.json in segmentrouting/polarfly, read on 2026-11-22."""
    builds = polarfly(7)
    document = fabric_document(builds[0], Carriers.of(builds, None).blocks[0])
    assert list(document) == [
        *("topology_id", "description", "nodes", "interfaces", "endpoints", "edges")
    ]
    counts = {word: len(document[word]) for word in list(document)[2:]}
    assert counts == {"nodes": 57, "interfaces": 448, "endpoints": 57, "edges": 448 + 57}
    assert sum(node["labels"]["absolute"] == "true" for node in document["nodes"]) == 8
    owners = {each["id"]: each["owner_node_id"] for each in document["interfaces"]}
    sids = {each["srv6_ua_sids"][0]["sid"] for each in document["interfaces"]}
    assert len(sids) == 448
    assert {"fc00:0:1001:f000::", "fc00:0:1039:f006::"} <= sids
    assert all(
        node["srv6_node_sid"]["sid"] == f"fc00:0:{0x1001 + v:x}::"
        for v, node in enumerate(document["nodes"])
    )
    for edge in document["edges"]:
        if edge["type"] == "igp_adjacency":
            assert owners[edge["local_iface_id"]] == edge["src_id"]
