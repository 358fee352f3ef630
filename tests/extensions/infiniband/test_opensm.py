"""The opensm target: its files, and what a real OpenSM on ibsim makes of them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx
import numpy as np
import pytest

from compilers.forwarding.single_packets import SinglePackets
from compilers.pipeline import compile_fabric
from compilers.readers.emitted_report import DifferenceList
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.targets.target_lookup import target
from extensions.infiniband.guids import Guids
from extensions.infiniband.lfts import LFTS
from extensions.infiniband.table_text import read_tables
from extensions.lossless.layers import deadlock_free_layers
from inventory.problems import InputError
from tests.compilers.routed import routed
from tests.extensions.infiniband.live_opensm import Subnet, subnet
from tests.extensions.infiniband.makers import rendered, service_levels

IQ = {"family": "polarstar", "q": 3, "supernode": "inductive-quad", "degree": 3}


def expected(build: Build) -> dict[int, dict[int, int]]:
    """Every switch's table, switch by switch from the tables' next hop: not the encoder's way."""
    w, guids = build.wiring, Guids.made_up(build)
    every = np.arange(build.tables.switches)
    after = Fib.of(build.tables, w.far_by_port()).next_switch(every)
    tables: dict[int, dict[int, int]] = {}
    for s in every.tolist():
        table = tables[int(guids.switch[s])] = {}
        port_to = dict(zip(w.far[s].tolist(), w.port[s].tolist(), strict=True))
        for d in every.tolist():
            if after[s, d] < 0:
                continue
            table[int(guids.switch[d])] = 0 if s == d else port_to[int(after[s, d])]
            for h, port in enumerate(w.host_port[d].tolist()):
                if port:
                    path = port if s == d else port_to[int(after[s, d])]
                    table[int(guids.host[d, h])] = path
    return tables


def test_only_hosts_that_are_cabled_have_guids() -> None:
    build = routed(family="oft", q=2)
    assert ((Guids.made_up(build).host > 0) == (build.wiring.host_port > 0)).all()


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("parameters", [{"q": 3}, {"q": 4}, IQ, {"family": "oft", "q": 3}], ids=str)
def test_tables_are_those_of_the_build(
    tmp_path: Path, parameters: dict[str, int | str], hosts: int
) -> None:
    build = rendered(routed(**parameters, hosts=hosts), tmp_path)
    blocks = read_tables(tmp_path / "lfts.txt", DifferenceList())
    tables = {b.switch: dict(zip(b.guid.tolist(), b.port.tolist(), strict=True)) for b in blocks}
    assert tables == expected(build)


@pytest.mark.parametrize("parameters", [{"q": 3}, IQ], ids=str)
def test_rules_give_every_pair_its_layer(tmp_path: Path, parameters: dict[str, int | str]) -> None:
    build = rendered(routed(**parameters, hosts=2), tmp_path)
    guids, found = Guids.made_up(build), deadlock_free_layers(build)
    levels = service_levels(tmp_path / "qos-policy.conf")
    wanted = {
        (s, d): int(found.layer[u, v])
        for u, here in enumerate(guids.host.tolist())
        for v, there in enumerate(guids.host.tolist())
        for s in here
        for d in there
        if found.layer[u, v]
    }
    assert levels == wanted


def test_golden_files(tmp_path: Path, golden) -> None:
    rendered(replace(routed(q=2), identity="0123456789abcdef"), tmp_path)
    for name in (LFTS, *target("opensm").files):
        golden((tmp_path / name).read_text().replace(str(tmp_path), "DIR"), f"opensm_q2_{name}")


def test_a_fabric_without_guids_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        target("opensm").render(routed(q=2), tmp_path)
    assert [problem.key for problem in error.value.problems] == ["nodes.guid", "nodes.hosts.guid"]
    assert "for 0, 1, 2 and 4 more; enter it there" in str(error.value)
    assert not list(tmp_path.iterdir())


def with_guids(disabled: dict[int, list[str]]) -> Build:
    nodes = [
        {
            "name": f"n{v}",
            "type": "leaf",
            "guid": f"{0x0002C90300001000 + v:#018x}",
            "hosts": [{"name": f"a{v}", "guid": f"{0x0002C9030000AA00 + v:#018x}"}],
            "disabled_ports": disabled.get(v, []),
        }
        for v in range(7)
    ]
    ports = [{"count": 3, "role": "fabric"}, {"name": "h{}", "count": 1, "role": "host"}]
    inventory = {"node_types": {"leaf": {"ports": ports}}, "nodes": nodes}
    keys = {"name": "ib", "topology": {"family": "polarfly", "q": 2}, "inventory": inventory}
    return compile_fabric(load_fabric(keys))


def test_guids_are_those_of_the_inventory(tmp_path: Path) -> None:
    build = with_guids({})
    target("opensm").render(build, tmp_path)
    known = Guids.of_inventory(build)
    number = [int(name[1:]) for name in build.wiring.names]
    assert known.switch.tolist() == [0x0002C90300001000 + v for v in number]
    assert known.host.tolist() == [[0x0002C9030000AA00 + v] for v in number]
    report = target("opensm").check_emitted(build, tmp_path)
    assert (report.differences, report.delivered) == (0, 42)


def test_a_line_for_no_port_is_one_difference(tmp_path: Path) -> None:
    build = with_guids({})
    target("opensm").render(build, tmp_path)
    file = tmp_path / "lfts.txt"
    lines = file.read_text().splitlines(keepends=True)
    # Before the first entry, which is for a GUID, a line for the number before that GUID.
    entry = next(number for number, line in enumerate(lines) if "portguid" in line)
    before = int(lines[entry].split()[-1], 16) - 1
    lines.insert(entry, f"0x0fff 001 portguid {before:#018x}\n")
    file.write_text("".join(lines))
    assert target("opensm").check_emitted(build, tmp_path).differences == 1


def test_a_wrong_port_is_reported_at_its_own_line(tmp_path: Path) -> None:
    """It was reported at the line of a port that there is not, if that line stood behind it."""
    build = with_guids({})
    target("opensm").render(build, tmp_path)
    file = tmp_path / "lfts.txt"
    lines = file.read_text().splitlines(keepends=True)
    entry = next(number for number, line in enumerate(lines) if "portguid" in line)
    lid, _, *guid = lines[entry].split()
    lines[entry] = f"{lid} 250 {' '.join(guid)}\n"
    lines.insert(entry + 1, f"0x0fff 001 portguid {int(guid[-1], 16) - 1:#018x}\n")
    file.write_text("".join(lines))
    report = target("opensm").check_emitted(build, tmp_path)
    assert [problem.line for problem in report.examples] == [entry + 2, entry + 1]


def test_a_host_whose_port_is_disabled_is_in_no_file(tmp_path: Path) -> None:
    build = with_guids({3: ["h1"]})
    target("opensm").render(build, tmp_path)
    report = target("opensm").check_emitted(build, tmp_path)
    assert (report.differences, report.pairs, report.delivered) == (0, 30, 30)
    assert '# "a3"' not in (tmp_path / "fabric.net").read_text()
    assert "portguid 0x0002c9030000aa03" not in (tmp_path / "lfts.txt").read_text()


MISREAD = [
    ("opensm.conf", "qos_sl2vl 0,1,0", "qos_sl2vl 0,1,best"),
    ("opensm.conf", "qos_sl2vl 0,1,0", "qos_sl2vl 0,1,017"),
    ("opensm.conf", "qos_sl2vl 0,1,0", "qos_sl2vl 0,1,16"),
    ("fabric.net", "[1](", f"[1]({'9' * 30}"),
    ("fabric.net", '"[1]', f'"[{"9" * 5000}]'),
]


@pytest.mark.parametrize(("name", "old", "new"), MISREAD, ids=range(len(MISREAD)))
def test_numbers_that_opensm_would_not_take(name: str, old: str, new: str, tmp_path: Path) -> None:
    build = rendered(routed(q=2), tmp_path)
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1))
    assert target("opensm").check_emitted(build, tmp_path, {"guids": "made-up"}).differences


def test_types_of_like_names_have_systems_of_their_own(tmp_path: Path) -> None:
    types = {"leaf-1": {"ports": [{"count": 8}]}, "leaf_1": {"ports": [{"count": 6}]}}
    nodes = [{"name": f"n{v}", "type": [*types][v % 2]} for v in range(7)]
    inventory = {"node_types": types, "nodes": nodes}
    keys = {"name": "ib", "topology": {"family": "polarfly", "q": 2}, "inventory": inventory}
    rendered(compile_fabric(load_fabric(keys)), tmp_path)
    ports = {file.stem: file.read_text().split()[4] for file in tmp_path.glob("*.ibnl")}
    assert ports == {"switch_8": "8", "switch_6": "6", "adapter": "1"}


def test_made_up_guids_are_all_different() -> None:
    for q, hosts, count in ((16, 1, 2 * 273), (2, 130, 7 * 131)):
        made = Guids.made_up(routed(q=q, hosts=hosts))
        assert len({*made.switch.tolist(), *made.host.ravel().tolist()}) == count


def test_switches_without_hosts_have_no_adapters(tmp_path: Path) -> None:
    build = rendered(routed("oft", q=2), tmp_path)
    assert not target("opensm").check_emitted(build, tmp_path, {"guids": "made-up"}).differences
    hosts = np.count_nonzero(build.wiring.host_port)
    assert len(re.findall("^Ca", (tmp_path / "fabric.net").read_text(), re.M)) == hosts < 21


@pytest.mark.parametrize(
    ("options", "key"),
    [({"spread": True}, "routing.balance"), ({"protect": "link"}, "routing.protect")],
)
def test_what_a_linear_table_cannot_do_is_refused(
    tmp_path: Path, options: dict[str, bool | str], key: str
) -> None:
    with pytest.raises(InputError) as error:
        rendered(routed(q=3, **options), tmp_path)
    assert key in [problem.key for problem in error.value.problems]


def waits(running: Subnet, levels: dict[tuple[int, int], int]) -> networkx.DiGraph:
    """What waits for what on the lanes that OpenSM programmed: (switch, port, lane)."""
    tables, lanes = running.tables(), running.lanes()
    cables = cables_of(running.folder.parent / "out" / "fabric.net")
    hosts = [guid for guid in tables[next(iter(tables))] if guid not in tables]
    graph = networkx.DiGraph()
    for source in hosts:
        for destination in hosts:
            level = levels.get((source, destination), 0)
            at, path = cables[source, 1], []
            while at[0] != destination:
                switch, entered = at
                port = tables[switch][destination]
                path.append((switch, port, lanes[switch, entered, port][level]))
                at = cables[switch, port]
            graph.add_edges_from(pairwise(path))
    return graph


def cables_of(net: Path) -> dict[tuple[int, int], tuple[int, int]]:
    """The end that each end, (GUID, port), is cabled to; adapters by their port GUID."""
    cables, here = {}, 0
    for line in net.read_text().splitlines():
        if head := re.match(r'(?:Ca|Switch)\t\d+ "([SH])-([0-9a-f]+)"', line):
            here = int(head[2], 16) + (head[1] == "H")
        elif port := re.match(r'\[(\d+)\][^\t]*\t"([SH])-([0-9a-f]+)"\[(\d+)\]', line):
            far = int(port[3], 16) + (port[2] == "H")
            cables[here, int(port[1])] = far, int(port[4])
    return cables


@pytest.mark.live
def test_opensm_forwards_as_the_tables_say(tmp_path: Path) -> None:
    """q=3: every entry, traces and levels from every third switch, no deadlock on lanes."""
    build = rendered(routed(q=3), tmp_path / "out")
    guids, found = Guids.made_up(build), deadlock_free_layers(build)
    with subnet(tmp_path / "out", tmp_path / "run") as running:
        assert running.tables() == expected(build)
        lids = running.lids()
        host = [lids[guid] for guid in guids.host[:, 0].tolist()]
        for s in range(0, len(host), 3):
            for d in range(len(host)):
                if s != d:
                    path = [
                        int(guids.switch[v])
                        for v in SinglePackets(build, d).minimal_path(s).switches
                    ]
                    assert running.trace(host[s], host[d]) == path
                    assert running.service_level(host[s], host[d]) == found.layer[s, d]
        graph = waits(running, service_levels(tmp_path / "out" / "qos-policy.conf"))
        assert networkx.is_directed_acyclic_graph(graph)
        assert not networkx.is_directed_acyclic_graph(waits(running, {}))


@pytest.mark.live
@pytest.mark.long
@pytest.mark.parametrize("parameters", [{"q": 7}, IQ, {"q": 31}], ids=str)
def test_opensm_takes_larger_fabrics(tmp_path: Path, parameters: dict[str, int | str]) -> None:
    """Every entry; traces and levels of pairs by chance; no deadlock (but for q=31: the time)."""
    build = rendered(routed(**parameters), tmp_path / "out")
    guids, found = Guids.made_up(build), deadlock_free_layers(build)
    random = np.random.default_rng(1)
    with subnet(tmp_path / "out", tmp_path / "run", patience=300) as running:
        assert running.tables() == expected(build)
        lids = running.lids()
        host = [lids[guid] for guid in guids.host[:, 0].tolist()]
        for s, d in random.integers(0, len(host), (40, 2)).tolist():
            if s != d:
                path = [
                    int(guids.switch[v]) for v in SinglePackets(build, d).minimal_path(s).switches
                ]
                assert running.trace(host[s], host[d]) == path
                assert running.service_level(host[s], host[d]) == found.layer[s, d]
        if build.tables.switches < 200:
            graph = waits(running, service_levels(tmp_path / "out" / "qos-policy.conf"))
            assert networkx.is_directed_acyclic_graph(graph)


def test_no_template_prints_the_tables(tmp_path):
    (tmp_path / "own" / "opensm").mkdir(parents=True)
    (tmp_path / "own" / "opensm" / "lfts.txt.j2").write_text("{{ identity }}")
    with pytest.raises(InputError, match=r"lfts\.txt\.j2: required no template for lfts\.txt"):
        target("opensm").render(
            routed(q=2), tmp_path / "out", tmp_path / "own", options={"guids": "made-up"}
        )
    assert not (tmp_path / "out").exists()
