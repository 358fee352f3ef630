"""examples/q7-pilot, of SONiC, EOS and FRR: from compile to a replaced switch, growth, and back."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
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
from compilers.wiring.addressing import as_numbers
from compilers.wiring.link_numbers import ends_of
from polarfab.fabric import Fabric
from tests.compilers.audit.device_tables import PRINTERS, printed, write
from tests.compilers.audit.test_names_around import FORMS, cabled, told
from tests.polarfab.conftest import Run

PILOT = Path(__file__).parents[2] / "examples" / "q7-pilot"
REPLACED = "C4-3"
Numbers = dict[tuple[str, ...], Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the pilot, whose numbers are in a file that is committed with them."""
    folder = tmp_path_factory.mktemp("site")
    spec = f"{(PILOT / 'fabric.yaml').read_text()}allocations: numbers.csv\n"
    (folder / "fabric.yaml").write_text(spec)
    (folder / "inventory.yaml").write_text((PILOT / "inventory.yaml").read_text())
    Fabric.from_spec(folder / "fabric.yaml").save(folder / "build")
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


def test_cables_are_right_and_a_swapped_one_is_named(
    pilot: Build, rendered: Path, tmp_path: Path
) -> None:
    """`check wiring`: each switch says in the form of its system what is at its ports."""
    assert Counter(pilot.systems) == {"sonic": 28, "eos": 28, "frr": 1}
    system_of = dict(zip(pilot.wiring.names, pilot.systems, strict=True))
    said = {path.name: FORMS[system_of[path.name]][0](path) for path in folders(rendered)}
    node_of = {host: node for node, (host, _) in said.items()}
    cables = sorted(cabled(said))

    def report(cables: list[Any], name: str) -> WiringReport:
        for system in sorted({*pilot.systems}):
            told(FORMS[system][1], said, cables, tmp_path / f"{name} {system}")
        (tmp_path / name).mkdir()
        for node, system in system_of.items():
            text = (tmp_path / f"{name} {system}" / f"{node}.out").read_text()
            (tmp_path / name / f"{node}.out").write_text(text)
        return WiringReport.of([pilot], [tmp_path / name])

    right = report(cables, "right")
    assert right.good
    assert (len(right.audit.right), right.audit.planned) == (224, 224)
    (one, two), (three, four) = cables[0], cables[99]
    kept = [cable for n, cable in enumerate(cables) if n not in (0, 99)]
    swapped = report([*kept, (one, four), (three, two)], "swapped")
    assert (len(swapped.audit.right), len(swapped.audit.misplaced)) == (222, 2)
    ends = {swapped.ports.node(end) for pair in swapped.audit.misplaced for end in pair}
    assert ends == {node_of[host] for host, _ in (one, two, three, four)}


def test_routes_are_right_and_a_lost_one_is_named(pilot: Build, tmp_path: Path) -> None:
    """`check routes`: each switch prints in the form of its system what it holds."""
    system = system_target(pilot)
    routes_of = system.routes_held(*system.check(pilot))
    assert routes_of
    for vertex, node in enumerate(pilot.wiring.names):
        routes = dict(printed(routes_of(vertex)))
        write(tmp_path / f"{node}.json", PRINTERS[pilot.systems[vertex]](routes))
    report = RouteReport.of(pilot, [tmp_path])
    assert (report.differences, report.switches) == ((), 57)
    for vertex in (pilot.systems.index(name) for name in ("sonic", "eos", "frr")):
        node, routes = pilot.wiring.names[vertex], dict(printed(routes_of(vertex)))
        lost = next(key for key, paths in routes.items() if paths[0][0][0] != "discard")
        del routes[lost]
        (tmp_path / "lost" / node).mkdir(parents=True)
        write(tmp_path / "lost" / node / f"{node}.json", PRINTERS[pilot.systems[vertex]](routes))
        (one,) = RouteReport.of(pilot, [tmp_path / "lost" / node]).differences
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
    if file == "frr.conf" and (vtysh := which("vtysh")):
        for number, lines in enumerate((drain, back)):
            (tmp_path / f"{number}.conf").write_text("\n".join(lines) + "\n")
            words = [vtysh, "-C", "-f", str(tmp_path / f"{number}.conf")]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert (done.returncode, "nknown" in done.stdout + done.stderr) == (0, False), done


def numbers(build: Build) -> Numbers:
    """Every label, address, number and cable that somebody has written down, by whose it is."""
    w, a = build.wiring, build.addressing
    plan = LinkPlan.of(build, system_target(build).chosen(build))
    found: Numbers = {}
    for vertex, (name, number) in enumerate(
        zip(w.names, as_numbers(build.base, w.names).tolist(), strict=True)
    ):
        found["AS", name] = number
        found["block", name] = str(a.network(vertex)), str(a.network6(vertex))
        for (port, far, _), ends in zip(w.ends(vertex), plan.at(vertex), strict=True):
            found["cable", name, w.names[far]] = w.port_name(vertex, port)
            found["addresses", name, w.names[far]] = ends
        for number_of_host in range(w.host_port.shape[1]):
            host = w.host_names[vertex * w.host_port.shape[1] + number_of_host]
            found["host", host] = name, str(a.host(vertex, number_of_host))
    for key, number in build.allocations.of(CABLE).used.items():
        u, v, _ = ends_of(key)
        found["label", w.names[u], w.names[v]] = number
    return found


def changed(before: Numbers, after: Numbers) -> set[tuple[str, ...]]:
    """Those that go or are others."""
    return {key for key, value in before.items() if after.get(key) != value}


def texts(fabric: Fabric, names: list[str], folder: Path) -> dict[str, str]:
    """The files of some switches, without the line that names the build."""
    fabric.render("", folder, check=False, nodes=names)
    return plain(folder, names)


def plain(folder: Path, names: list[str]) -> dict[str, str]:
    """Files of some switches, without the identity of the build."""
    return {
        f"{name}/{path.name}": re.sub(r"\b[0-9a-f]{16}\b", "", path.read_text())
        for name in names
        for path in sorted((folder / name).iterdir())
    }


def test_nothing_changes_that_need_not(
    site: Path, pilot: Build, rendered: Path, polarfab: Run, tmp_path: Path
) -> None:
    """A larger model, an enlarged block, a further cluster, and back: every step is compiled."""
    first, w = numbers(pilot), pilot.wiring
    spec, inventory = site / "fabric.yaml", site / "inventory.yaml"
    original = spec.read_text(), inventory.read_text()
    near = [w.names[far] for _, far, _ in w.ends(w.names.index(REPLACED))]
    some = [REPLACED, *near, "C0-8", "C1-1"]
    before = plain(rendered, some)

    def compiled() -> tuple[Fabric, str]:
        code, _, err = polarfab("compile", spec, "-o", site / "build")
        assert code == 0, err
        return Fabric.load(site / "build"), err

    row = rf"(name: {REPLACED}, type: copackaged-)4x8(.*)SN0032"
    inventory.write_text(re.sub(row, r"\g<1>6x8\2SN9999", original[1]))
    larger, err = compiled()
    assert "nothing else changes" in err
    assert changed(first, numbers(larger.build)) == set()
    assert {(c.name, c.what) for c in compare(pilot, larger.build).settings} == {
        (REPLACED, "serial"),
        (REPLACED, "type"),
    }
    after = texts(larger, some, tmp_path / "larger")
    assert {key.split("/")[0] for key in before if after[key] != before[key]} == {REPLACED}

    spec.write_text(original[0].replace("10.7.0.0/16", "10.6.0.0/15"))
    assert spec.read_text() != original[0]
    enlarged, err = compiled()
    assert "nothing else changes" in err
    assert changed(first, numbers(enlarged.build)) == set()

    words = "--clusters", "quadric:1", "--spec", spec, "-o", site / "grown"
    code, _, err = polarfab("expand", site / "build", *words)
    assert code == 0, err
    grown = Fabric.load(site / "grown").build
    assert len(grown.wiring.names) == 57 + 8
    assert changed(first, numbers(grown)) == set()
    code, _, err = polarfab("compile", site / "grown-fabric.yaml", "-o", site / "grown")
    assert (code, "no switch, cable, host or link number changes" in err) == (0, True), err

    spec.write_text(original[0])
    inventory.write_text(original[1])
    back, err = compiled()
    assert changed(first, numbers(back.build)) == set()
    assert numbers(back.build).keys() == first.keys()
    assert texts(back, some, tmp_path / "back") == before
