"""Several LIDs a host: what a real OpenSM programs, and ibdmchk's verdict on credit loops."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.forwarding.single_packets import SinglePackets
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.targets.target_lookup import target
from extensions.infiniband.guids import Guids
from extensions.infiniband.lid_layers import LidLayers, lid_layers
from inventory.problems import InputError
from tests.compilers.routed import routed
from tests.extensions.infiniband.live_ibdm import credit_loops
from tests.extensions.infiniband.live_opensm import Subnet, subnet
from tests.extensions.infiniband.makers import rendered, service_levels


def expected(build: Build, found: LidLayers, lids: dict[int, int]) -> dict[int, dict[int, int]]:
    """Every switch's table by LID, from each layer's next hop: not the encoder's way."""
    w, guids = build.wiring, Guids.made_up(build)
    every = np.arange(build.tables.switches)
    minimal, *layers = (
        Fib.of(tables, w.far_by_port()).next_switch(every).tolist()
        for tables in (build.tables, *found.tables)
    )
    tables: dict[int, dict[int, int]] = {}
    for s in every.tolist():
        table = tables[int(guids.switch[s])] = {}
        port_to = dict(zip(w.far[s].tolist(), w.port[s].tolist(), strict=True)) | {s: 0}
        for d in every.tolist():
            table[lids[int(guids.switch[d])]] = port_to[minimal[s][d]]
            for h, port in enumerate(w.host_port[d].tolist()):
                base = lids[int(guids.host[d, h])]
                for bit, step in enumerate(layers):
                    table[base + bit] = port if s == d else port_to[step[s][d]]
    return tables


def traces(running: Subnet, build: Build, found: LidLayers, pairs: list[tuple[int, int]]) -> None:
    """Compare ibtracert's paths to every LID, and the service level, of pairs of switches."""
    guids, lids = Guids.made_up(build), running.lids()
    builds = [replace(build, tables=tables) for tables in found.tables]
    for s, d in pairs:
        source, base = (lids[int(guids.host[v, 0])] for v in (s, d))
        assert running.service_level(source, base) == found.lane[s, d]
        for bit, each in enumerate(builds):
            path = [int(guids.switch[v]) for v in SinglePackets(each, d).minimal_path(s).switches]
            assert running.trace(source, base + bit) == path


def proved(tmp_path: Path, build: Build, lmc: int, lanes: int, traced: int | None = None) -> None:
    """Render, run, and compare; trace paths to every LID of all switches' hosts, or of so many."""
    rendered(build, tmp_path / "out", lmc=str(lmc), lanes=str(lanes))
    found = lid_layers(build, 1 << lmc, lanes)
    order = build.tables.switches
    away = np.random.default_rng(1).integers(1, order, order)[:traced].tolist()
    with subnet(tmp_path / "out", tmp_path / "run", patience=300) as running:
        assert running.read_tables() == expected(build, found, running.lids())
        traces(running, build, found, [((d + far) % order, d) for d, far in enumerate(away)])
        levels = service_levels(tmp_path / "out" / "qos-policy.conf")
        followed = order * (order - 1) << lmc
        assert credit_loops(running, lmc, levels, 300) == (followed, False)
        assert credit_loops(running, lmc, {}, 300) == (followed, True)


@pytest.mark.live
def test_opensm_programs_two_lids_a_host(tmp_path: Path) -> None:
    """q=4: dump_fts has every entry, three pairs are traced, ibdmchk finds loops in one lane."""
    proved(tmp_path, routed(q=4), 1, 4, 3)


@pytest.mark.live
@pytest.mark.long
@pytest.mark.parametrize("q", [7, 13])
@pytest.mark.parametrize("lmc", [1, 2, 3])
def test_opensm_programs_every_lid(tmp_path: Path, q: int, lmc: int) -> None:
    """Every entry, a path to every LID, and the credit loops of all paths."""
    proved(tmp_path, routed(q=q), lmc, 8)


@pytest.mark.live
@pytest.mark.long
def test_opensm_programs_two_lids_a_host_of_polarstar(tmp_path: Path) -> None:
    """IQ (3, 3): every entry, a path to each LID, and the credit loops of all paths."""
    build = routed("polarstar", supernode="inductive-quad", q=3, degree=3)
    proved(tmp_path, build, 1, 8)


@pytest.mark.live
def test_ibdm_reads_the_topology(tmp_path: Path) -> None:
    """By the files for ibdm alone, without LIDs, every host reaches every other."""
    rendered(routed(q=3, hosts=2), tmp_path)
    command = ["ibdmchk", "-t", "fabric.topo", "-n", "h0-0/U1", "-p", "1"]
    environment = os.environ | {"IBDM_IBNL_PATH": str(tmp_path)}
    said = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    ).stdout
    assert "-I- Defined 39/39 systems/nodes" in said
    assert f"-I- Scanned:{26 * 25} CA to CA paths" in said


PALEY = {"family": "polarstar", "supernode": "paley", "q": 3, "degree": 2}


@pytest.mark.parametrize(
    ("parameters", "lmc", "hosts"),
    [({"q": 3}, 2, 2), (PALEY, 1, 1)],
)
def test_what_is_written_reads_back(
    tmp_path: Path, parameters: dict[str, int | str], lmc: int, hosts: int
) -> None:
    options = {"guids": "made-up", "lmc": str(lmc)}
    build = routed(**parameters, hosts=hosts)
    target("opensm").render(build, tmp_path, options=options)
    report = target("opensm").check_emitted(build, tmp_path, options)
    assert (report.differences, report.examples) == (0, ())
    assert report.delivered == report.pairs == build.tables.switches * (build.tables.switches - 1)
    other = target("opensm").check_emitted(build, tmp_path, options | {"lmc": "0"})
    assert f"lmc {lmc}" in {example.says for example in other.examples} or other.differences > 10


@pytest.mark.parametrize(
    ("parameters", "lmc", "required"),
    [
        ({"q": 2}, "2", "at most 1: every path to a switch comes in over another of its 3 links"),
        ({"family": "pn", "q": 3}, "1", "0, but for a PolarFly or PolarStar without gaps"),
        (PALEY, "2", "at most 1 for a PolarStar"),
        (PALEY | {"q": 8}, "1", "0 for a PolarStar of more than 256 switches"),
    ],
    ids=str,
)
def test_layers_that_cannot_be_are_refused(
    tmp_path: Path, parameters: dict[str, int | str], lmc: str, required: str
) -> None:
    with pytest.raises(InputError) as error:
        rendered(routed(**parameters), tmp_path, lmc=lmc)
    assert f"set lmc: required {required}" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_paths_that_fit_no_lane_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lanes for both paths of every pair, given 4: \d+ pairs"):
        rendered(routed(**PALEY), tmp_path, lmc="1", lanes="4")
    assert not list(tmp_path.iterdir())


def test_hosts_that_need_more_lids_than_there_are_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at most 49,151 LIDs .*given 54,932"):
        rendered(routed(q=11, hosts=103), tmp_path, lmc="2")


def test_a_cycle_of_waits_is_named(tmp_path: Path) -> None:
    """All pairs on lane 0, as if the policy were lost."""
    options = {"guids": "made-up", "lmc": "1"}
    build = routed(q=4)
    target("opensm").render(build, tmp_path, options=options)
    policy = tmp_path / "qos-policy.conf"
    policy.write_text(re.sub(r"sl: \d+", "sl: 0", policy.read_text()))
    report = target("opensm").check_emitted(build, tmp_path, options)
    assert report.differences
    (cycle,) = [e for e in report.examples if "in a circle" in e.says]
    assert (cycle.file, cycle.line) == (str(policy), 0)
    assert cycle.says.startswith("waits on lane 0")
