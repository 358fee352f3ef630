"""Slurm's topology files, read by a real slurmctld or by the grammar of its manual."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.pipeline import compile_fabric
from compilers.planes import compile_planes
from compilers.spec.fabric_file import load_fabric
from extensions.clusters.host_groups import HostGroups
from extensions.clusters.slurm_topology import files, hostlist
from inventory.problems import InputError
from tests.compilers.damaged_planes import damaged_planes
from tests.extensions.clusters.live_slurm import expanded, slurmctld, tree

Q7 = {"name": "lab", "topology": {"family": "polarfly", "q": 7}, "hosts_per_node": 4}
STAR = {
    "name": "star",
    "topology": {"family": "polarstar", "q": 3, "supernode": "inductive-quad", "degree": 3},
}
NAMES = st.from_regex(r"[a-z]{1,2}-?[0-9]{0,3}", fullmatch=True)


def read(text: str) -> list[str]:
    """The names of a hostlist, by the description in slurm.conf(5)."""
    found = []
    for prefix, inside, plain in re.findall(r"([^,\[]*)\[([^]]*)\](?:,|$)|([^,\[]+)(?:,|$)", text):
        for part in inside.split(",") if inside else ():
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            found += [f"{prefix}{n:0{len(first)}d}" for n in numbers]
        found += [plain] if plain else []
    return found


@settings(max_examples=40)
@given(st.lists(NAMES, min_size=1, max_size=12))
def test_a_hostlist_is_its_names_in_their_order(names: list[str]) -> None:
    assert read(hostlist(names)) == names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["h0", "h1", "h2", "h7"], "h[0-2,7]"),
        (["n08", "n09", "n10", "n9"], "n[08-10,9]"),
        (["25", "26"], "25,26"),
        (["web", "web1"], "web,web1"),
    ],
)
def test_hostlists(names: list[str], text: str) -> None:
    assert hostlist(names) == text


@pytest.mark.live
def test_slurmctld_reads_the_tree(tmp_path: Path) -> None:
    build = compile_fabric(load_fabric(Q7))
    made = dict(files([build]))
    (tmp_path / "topology.conf").write_text(made["tree/topology.conf"])
    groups = HostGroups.of([build])
    hosts = list(groups.hosts())
    assert len(hosts) == len(set(hosts)) == 57 * 4
    with slurmctld(tmp_path / "slurm", tmp_path / "topology.conf", hosts) as running:
        found = tree(running)
        assert sum(level == 0 for level, *_ in found.values()) == 57
        assert {name for name, (level, *_) in found.items() if level == 2} == {"lab"}
        assert sorted(expanded(running, found["lab"][1])) == sorted(hosts)
        for name, members in groups.clusters():
            level, nodes, below = found[name]
            assert level == 1
            assert sorted(expanded(running, below)) == sorted(s.name for s in members)
            own = sorted(host for switch in members for host in switch.hosts)
            assert sorted(expanded(running, nodes)) == own
        for text in re.findall("Nodes=(.*)", made["block/topology.conf"]):
            assert expanded(running, text) == read(text)


@pytest.mark.parametrize(("spec", "blocks", "size"), [(Q7, 8, 28), (STAR, 13, 8)])
def test_blocks_are_clusters_and_supernodes(
    spec: dict[str, object], blocks: int, size: int
) -> None:
    build = compile_fabric(load_fabric(spec))
    made = dict(files([build]))
    *lines, last = made["block/topology.conf"].splitlines()
    pairs = [re.fullmatch(r"BlockName=(\S+) Nodes=(\S+)", line) for line in lines]
    found = {pair[1]: read(pair[2]) for pair in pairs if pair}
    assert len(found) == len(lines) == blocks
    assert last == f"BlockSizes={size}"
    assert min(map(len, found.values())) == size
    listed = [host for hosts in found.values() for host in hosts]
    assert sorted(listed) == sorted(HostGroups.of([build]).hosts())

    tree_form, block_form = yaml.safe_load(made["topology.yaml"])
    assert (tree_form["cluster_default"], block_form["cluster_default"]) == (True, False)
    assert block_form["block"]["block_sizes"] == [size]
    assert {b["block"]: read(b["nodes"]) for b in block_form["block"]["blocks"]} == found
    switches = tree_form["tree"]["switches"]
    text = "".join(
        f"SwitchName={s['switch']} "
        + (f"Nodes={s['nodes']}\n" if "nodes" in s else f"Switches={s['children']}\n")
        for s in switches
    )
    assert text == made["tree/topology.conf"]


def test_a_host_of_several_planes_is_one() -> None:
    builds = compile_planes(load_fabric(Q7 | {"planes": 2}))
    one, two = HostGroups.of(builds[:1]), HostGroups.of(builds)
    assert list(one.hosts()) == list(two.hosts())
    assert (one.name, two.name) == ("lab-p1", "lab")


def test_a_host_without_a_port_to_the_first_plane_is_one_too(tmp_path: Path) -> None:
    builds = damaged_planes(tmp_path, 1)
    hosts = {switch.name: switch.hosts for switch in HostGroups.of(builds).switches}
    assert (hosts["p1-3"], hosts["p2-5"]) == (("h3-0", "h3-1"), ("h5-0", "h5-1"))
    assert list(map(len, hosts.values())) == [2] * 7


def test_a_cluster_is_not_called_as_a_switch() -> None:
    nodes = [{"name": name, "type": "copackaged-4x8"} for name in ("fan1", "lab", *"abcde")]
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 2},
        "inventory": {"nodes": nodes},
    }
    groups = HostGroups.of([compile_fabric(load_fabric(spec))])
    names = [groups.name, *(name for name, _ in groups.clusters())]
    assert "fan1-all" in names
    assert groups.name == "lab-all"
    assert not {switch.name for switch in groups.switches} & {*names}


def test_no_hosts() -> None:
    build = compile_fabric(load_fabric(Q7 | {"hosts_per_node": 0}))
    with pytest.raises(InputError, match="a fabric with hosts"):
        dict(files([build]))
