"""examples/q7-pilot, of SONiC, EOS and FRR: from compile to a replaced switch, growth, and back."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from compilers.audit.route_report import RouteReport
from compilers.audit.wiring_report import WiringReport
from compilers.spec.allocations import CABLE
from compilers.tables.build import Build
from compilers.targets.node_systems import system_target
from compilers.targets.routed.bgp.drained import maintenance_lines
from compilers.targets.routed.link_addresses import LinkPlan
from compilers.update.compare import compare
from compilers.wiring.as_numbers import as_numbers
from compilers.wiring.link_numbers import numbers_of_key
from polarfab.fabric import Fabric
from polarfab.output.change_output import write_allocations
from tests.compilers.audit.device_tables import PRINTERS, printed, write
from tests.compilers.audit.test_names_around import FORMS, cabled, told
from tests.polarfab.conftest import Run
from tests.vtysh import judged

PILOT = Path(__file__).parents[2] / "examples" / "q7-pilot"
REPLACED = "C4-3"
Numbers = dict[tuple[str, ...], Any]
Descriptions = dict[str, tuple[str, dict[str, str]]]
"""The host name of each switch, and the descriptions of its ports by their names."""
Cable = tuple[tuple[str, str], ...]
"""Both ends of a cable, host name and port."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the pilot, whose numbers are in a file that is committed with them."""
    folder = tmp_path_factory.mktemp("site")
    spec = f"{(PILOT / 'fabric.yaml').read_text()}allocations: numbers.csv\n"
    (folder / "fabric.yaml").write_text(spec)
    (folder / "inventory.yaml").write_text((PILOT / "inventory.yaml").read_text())
    write_allocations(Fabric.from_spec(folder / "fabric.yaml").save(folder / "build"), False)
    return folder


@pytest.fixture(scope="module")
def pilot(site: Path) -> Build:
    """The build of the first day."""
    return Fabric.load(site / "build").build


@pytest.fixture(scope="module")
def rendered(pilot: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the first day, each for the system of its switch."""
    folder = tmp_path_factory.mktemp("rendered")
    Fabric.of(pilot).render("", folder, check=False)
    return folder


def folders(rendered: Path) -> list[Path]:
    """Those of switches."""
    return [path for path in sorted(rendered.iterdir()) if path.is_dir()]


def descriptions(build: Build, rendered: Path) -> Descriptions:
    """The host name and the descriptions of ports in the files of each switch, by its name."""
    system_of = dict(zip(build.wiring.names, build.systems, strict=True))
    return {path.name: FORMS[system_of[path.name]][0](path) for path in folders(rendered)}


def print_neighbours(build: Build, said: Descriptions, cables: list[Cable], folder: Path) -> None:
    """Write what each switch prints of its neighbours, in the form of its system.

    Args:
        build: its switches.
        said: the descriptions of ports.
        cables: those that are plugged.
        folder: for what switches print; does not exist yet.
    """
    folder.mkdir()
    others = folder.with_name(f"{folder.name} in all forms")
    others.mkdir()
    for system in sorted({*build.systems}):
        told(FORMS[system][1], said, cables, others / system)
    for node, system in zip(build.wiring.names, build.systems, strict=True):
        (others / system / f"{node}.out").rename(folder / f"{node}.out")


def print_routes(build: Build, folder: Path, nodes: Sequence[str]) -> None:
    """Write what switches print, in the form of their systems, when they hold all their routes."""
    system = system_target(build)
    routes_of = system.routes_held(*system.check(build))
    assert routes_of
    for node in nodes:
        vertex = build.wiring.names.index(node)
        routes = dict(printed(routes_of(vertex)))
        write(folder / f"{node}.json", PRINTERS[build.systems[vertex]](routes))


@pytest.fixture(scope="module")
def on_first_day(pilot: Build, rendered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What switches print of their neighbours and routes."""
    folder = tmp_path_factory.mktemp("printed")
    print_all(pilot, rendered, folder)
    return folder


def print_all(build: Build, rendered: Path, folder: Path) -> None:
    """Write what each switch prints of its neighbours and its routes.

    Args:
        build: what is planned.
        rendered: the files of its switches, whose descriptions name the far ends of cables.
        folder: for what switches print.
    """
    said = descriptions(build, rendered)
    print_neighbours(build, said, sorted(cabled(said)), folder / "neighbours")
    print_routes(build, folder / "routes", build.wiring.names)


def require_right(build: Build, folder: Path) -> None:
    """Pass if `check wiring` and `check routes` find nothing wrong in what all switches print.

    Args:
        build: what is planned.
        folder: what switches print.
    """
    wiring = WiringReport.of([build], [folder / "neighbours"])
    links, switches = build.topology.graph.size, len(build.wiring.names)
    assert wiring.good
    assert (len(wiring.audit.right), wiring.audit.planned) == (links, links)
    routes = RouteReport.of(build, [folder / "routes"])
    assert (routes.differences, routes.switches) == ((), switches)


def test_cables_and_routes_are_right(pilot: Build, on_first_day: Path) -> None:
    """`check wiring` and `check routes` of the first day."""
    assert Counter(pilot.systems) == {"sonic": 28, "eos": 28, "frr": 1}
    assert pilot.topology.graph.size == 224
    require_right(pilot, on_first_day)


def test_swapped_cables_are_named(pilot: Build, rendered: Path, tmp_path: Path) -> None:
    said = descriptions(pilot, rendered)
    cables = sorted(cabled(said))
    (one, two), (three, four) = cables[0], cables[99]
    kept = [cable for place, cable in enumerate(cables) if place not in (0, 99)]
    cables = [*kept, (one, four), (three, two)]
    print_neighbours(pilot, said, cables, tmp_path / "swapped")
    swapped = WiringReport.of([pilot], [tmp_path / "swapped"])
    assert (len(swapped.audit.right), len(swapped.audit.misplaced)) == (222, 2)
    ends = {swapped.sockets.node(end) for pair in swapped.audit.misplaced for end in pair}
    node_of = {host: node for node, (host, _) in said.items()}
    assert ends == {node_of[host] for host, _ in (one, two, three, four)}


@pytest.mark.parametrize("system", ["sonic", "eos", "frr"])
def test_a_lost_route_is_named(system: str, pilot: Build, tmp_path: Path) -> None:
    vertex, whole = pilot.systems.index(system), system_target(pilot)
    routes_of = whole.routes_held(*whole.check(pilot))
    assert routes_of
    node, routes = pilot.wiring.names[vertex], dict(printed(routes_of(vertex)))
    lost = next(key for key, paths in routes.items() if paths[0][0][0] != "discard")
    del routes[lost]
    write(tmp_path / f"{node}.json", PRINTERS[system](routes))
    (one,) = RouteReport.of(pilot, [tmp_path]).differences
    assert (one.switch, one.kind, one.table, one.prefix) == (node, "missing", *lost)


@pytest.mark.parametrize("system", ["sonic", "eos", "frr"])
def test_a_drain_names_what_is_rendered_and_its_end_takes_it_back(
    system: str, pilot: Build, rendered: Path, tmp_path: Path
) -> None:
    """Every policy and network that the lines change is one of the switch's file."""
    node = pilot.wiring.names[pilot.systems.index(system)]
    file = "eos.cfg" if system == "eos" else "frr.conf"
    text = " ".join((rendered / node / file).read_text().split())
    drain, back = (maintenance_lines(pilot, "", {}, node, end=end) for end in (False, True))
    for line in map(str.strip, drain):
        if line.startswith(("router bgp", "no network", "route-map announced")):
            assert line.removeprefix("no ").removesuffix(" 5") in text, line
    lists = [line for line in drain if "prefix-list own-" in line and "match" not in line]
    assert len(lists) == 2
    assert {f"no {line}" for line in lists} <= set(back)
    assert any("set as-path prepend" in line for line in drain)
    if file == "frr.conf" and which("vtysh"):
        for number, lines in enumerate((drain, back)):
            (tmp_path / f"{number}.conf").write_text("\n".join(lines) + "\n")
            code, out, errors = judged(tmp_path / f"{number}.conf")
            assert (code, "nknown" in out + errors) == (0, False), out + errors


def numbers(build: Build) -> Numbers:
    """Every label, address, number and cable that somebody has written down, by whose it is."""
    w, a = build.wiring, build.addressing
    plan = LinkPlan.of(build, system_target(build).chosen(build))
    found: Numbers = {}
    for vertex, (name, number) in enumerate(
        zip(w.names, as_numbers(build.base, w.names, build.allocations).tolist(), strict=True)
    ):
        found["AS", name] = number
        found["block", name] = str(a.network(vertex)), str(a.network6(vertex))
        for (port, far, _), ends in zip(w.links_of(vertex), plan.at(vertex), strict=True):
            found["cable", name, w.names[far]] = w.port_name(vertex, port)
            found["addresses", name, w.names[far]] = ends
        for number_of_host in range(w.host_port.shape[1]):
            host = w.host_names[vertex * w.host_port.shape[1] + number_of_host]
            found["host", host] = name, str(a.host(vertex, number_of_host))
    for key, number in build.allocations.of(CABLE).used.items():
        u, v, _ = numbers_of_key(key)
        found["label", w.names[u], w.names[v]] = number
    return found


def changed(before: Numbers, after: Numbers) -> set[tuple[str, ...]]:
    """Those that go or are others."""
    return {key for key, value in before.items() if after.get(key) != value}


def texts(fabric: Fabric, names: list[str], folder: Path) -> dict[str, str]:
    """The files of some switches, without the identity of the build."""
    fabric.render("", folder, check=False, nodes=names)
    return plain(folder, names)


def plain(rendered: Path, names: list[str]) -> dict[str, str]:
    """The files of some switches, without the identity of the build."""
    return {
        f"{name}/{path.name}": re.sub(r"\b[0-9a-f]{16}\b", "", path.read_text())
        for name in names
        for path in sorted((rendered / name).iterdir())
    }


def settled(folder: Path) -> dict[str, bytes]:
    """The bytes of the files of a build that say everything but its reserved numbers."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in (folder / "fabric.json", *sorted((folder / "arrays").iterdir()))
    }


def used(file: Path) -> list[str]:
    """The lines of a file of allocations whose numbers are not only reserved."""
    return [line for line in file.read_text().splitlines() if not line.split(",")[4]]


def test_nothing_changes_that_need_not(
    site: Path, pilot: Build, rendered: Path, on_first_day: Path, polarfab: Run, tmp_path: Path
) -> None:
    """A larger model, a further cluster, an enlarged block, and back: every step is compiled.

    `check wiring` and `check routes` pass on what switches printed before it. The larger model has
    other numbers at the ports of its hosts, and after the cluster is added, all switches print
    anew. An enlarged block leaves every number, and the files of some switches.
    """
    first, w = numbers(pilot), pilot.wiring
    written, listed = settled(site / "build"), used(site / "numbers.csv")
    spec, inventory, larger_spec = (
        site / name for name in ("fabric.yaml", "inventory.yaml", "grown-fabric.yaml")
    )
    original = inventory.read_text()
    near = [w.names[far] for _, far, _ in w.links_of(w.names.index(REPLACED))]
    some = [REPLACED, *near[:2], "C0-8", "C1-1"]
    before = plain(rendered, some)

    def compiled(file: Path, folder: str, said: str) -> Fabric:
        """Compile a file into the folder of the build that is there."""
        code, _, err = polarfab("compile", file, "-o", site / folder)
        assert (code, said in err) == (0, True), err
        fabric = Fabric.load(site / folder)
        assert changed(first, numbers(fabric.build)) == set()
        return fabric

    row = rf"(name: {REPLACED}, type: copackaged-)4x8(.*)SN0032"
    inventory.write_text(re.sub(row, r"\g<1>6x8\2SN9999", original))
    larger = compiled(spec, "build", "nothing else changes")
    shutil.copytree(on_first_day, tmp_path / "with larger")
    print_routes(larger.build, tmp_path / "with larger" / "routes", [REPLACED])
    require_right(larger.build, tmp_path / "with larger")
    settings = {(change.name, change.setting) for change in compare(pilot, larger.build).settings}
    assert settings == {(REPLACED, "serial"), (REPLACED, "type")}
    after = texts(larger, some, tmp_path / "larger")
    assert {key.split("/")[0] for key in before if after[key] != before[key]} == {REPLACED}

    words = "--clusters", "quadric:1", "--spec", spec, "-o", site / "grown"
    code, _, err = polarfab("expand", site / "build", *words)
    assert (code, "8 new switches without a management address" in err) == (0, True), err
    grown = compiled(larger_spec, "grown", "no switch, cable, host or link number changes")
    assert len(grown.build.wiring.names) == 57 + 8
    grown.render("", tmp_path / "grown", check=False)
    print_all(grown.build, tmp_path / "grown", tmp_path)
    require_right(grown.build, tmp_path)

    text = larger_spec.read_text()
    larger_spec.write_text(text.replace("10.7.0.0/16", "10.6.0.0/15"))
    assert larger_spec.read_text() != text
    enlarged = compiled(larger_spec, "grown", "nothing else changes")
    some.append(grown.build.wiring.names[-1])
    assert texts(enlarged, some, tmp_path / "enlarged") == plain(tmp_path / "grown", some)

    inventory.write_text(original)
    back = compiled(spec, "grown", "nothing else changes")
    require_right(back.build, on_first_day)
    assert settled(site / "grown") == written
    assert used(site / "numbers.csv") == listed
    assert numbers(back.build).keys() == first.keys()
