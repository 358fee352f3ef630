"""examples/q7-pilot goes around: what is rendered, what devices then say, and a new switch."""

import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from shutil import which

import pytest

from compilers.audit.route_report import RouteReport
from compilers.audit.wiring_report import WiringReport
from compilers.readers.devices.held_routes import ANY, IPV4_RULES, IPV6_RULES
from compilers.targets.routed.bgp.drained import drained_systems, maintenance_lines
from compilers.targets.target_lookup import target
from polarfab.fabric import Fabric
from tests.compilers.audit.device_tables import PRINTERS, write
from tests.compilers.audit.test_names_around import FORMS, cabled, told

PILOT = Path(__file__).parents[2] / "examples" / "q7-pilot"
BGP = {"routing": "bgp"}
RENDERED = {"eos": BGP, "sonic": BGP | {"unnumbered": "on"}}
"""Systems of its switches, with options; `test_names_around` has all on small fabrics."""


@pytest.fixture(scope="module")
def pilot():
    return Fabric.from_spec(PILOT / "fabric.yaml").compile()


def of_one(build):
    """The build where all switches have one system, and options say how routes come about."""
    return replace(build, systems=(), control={})


@pytest.fixture(scope="module", params=RENDERED)
def rendered(request, pilot, tmp_path_factory):
    options = RENDERED[request.param]
    build, folder = of_one(pilot.build), tmp_path_factory.mktemp("pilot")
    target(request.param).render(build, folder / "out", options=options)
    return request.param, build, options, folder


def test_its_cables_are_right_and_a_swapped_one_is_named(rendered):
    name, build, _, folder = rendered
    read, form = FORMS[name]
    said = {path.name: read(path) for path in (folder / "out").iterdir()}
    cables = sorted(cabled(said))
    told(form, said, cables, folder / "right")
    report = WiringReport.of([build], [folder / "right"])
    assert report.good
    assert (len(report.audit.right), report.audit.planned) == (224, 224)
    (one, two), (three, four) = cables[0], cables[99]
    kept = [cable for n, cable in enumerate(cables) if n not in (0, 99)]
    told(form, said, [*kept, (one, four), (three, two)], folder / "swapped")
    found = WiringReport.of([build], [folder / "swapped"])
    assert (len(found.audit.right), len(found.audit.misplaced)) == (222, 2)


def test_its_routes_are_right_and_a_lost_one_is_named(rendered):
    name, build, options, folder = rendered
    printer = PRINTERS[name]
    system = target(name)
    held = system.routes_held(*system.check(build, options))
    known = {node: dict(_said(held(v))) for v, node in enumerate(build.wiring.names)}
    (folder / "said").mkdir()
    for node, routes in known.items():
        write(folder / "said" / f"{node}.json", printer(routes))
    report = RouteReport.of(build, [folder / "said"], name, options)
    assert report.differences == ()
    assert report.switches == 57
    node = build.wiring.names[5]
    lost = next(key for key, paths in known[node].items() if paths[0][0][0] != "discard")
    del known[node][lost]
    write(folder / "said" / f"{node}.json", printer(known[node]))
    (one,) = RouteReport.of(build, [folder / "said"], name, options).differences
    assert (one.switch, one.kind, one.table, one.prefix) == (node, "missing", *lost)


def _said(held):
    """What a switch with these routes has; a gateway that BGP learned means but its family."""
    for table, routes in held.items():
        for prefix, paths in routes.items():
            known = "fe80::1" if ":" in prefix else "169.254.0.1"
            if table not in (IPV4_RULES, IPV6_RULES):
                yield (
                    (table, prefix),
                    [[(known if h[0] == ANY else h[0], *h[1:]) for h in hops] for hops in paths],
                )


def test_two_makers_and_a_linux_machine_read_back_as_the_tables(pilot, tmp_path):
    assert Counter(pilot.build.systems) == {"sonic": 28, "eos": 28, "frr": 1}
    (rendering,) = pilot.render("", tmp_path)
    assert (rendering.nodes, rendering.checked) == (57, True)


@pytest.mark.parametrize("name", drained_systems())
def test_a_drain_names_what_is_rendered_and_its_end_takes_it_back(name, pilot, tmp_path):
    """Every policy and network that the lines change is one of the switch's file."""
    build, options = of_one(pilot.build), RENDERED.get(name, BGP)
    node = build.wiring.names[9]
    target(name).render(build, tmp_path / "out", options=options, only=[9])
    file = "frr.conf" if name in ("frr", "sonic") else f"{name}.cfg"
    rendered = " ".join((tmp_path / "out" / node / file).read_text().split())
    drain, back = (maintenance_lines(build, name, options, node, end=end) for end in (False, True))
    for line in map(str.strip, drain):
        if line.startswith(("router bgp", "no network", "route-map announced")):
            known = line.removeprefix("no ").removesuffix(" 5")
            assert known in rendered, line
    own = [line for line in drain if "prefix-list own-" in line and "match" not in line]
    assert len(own) == 2
    assert {f"no {line}" for line in own} <= set(back)
    assert any("set as-path prepend" in line for line in drain)
    if file == "frr.conf" and (vtysh := which("vtysh")):
        for number, lines in enumerate((drain, back)):
            (tmp_path / f"{number}.conf").write_text("\n".join(lines) + "\n")
            words = [vtysh, "-C", "-f", str(tmp_path / f"{number}.conf")]
            done = subprocess.run(words, capture_output=True, text=True)
            assert (done.returncode, "nknown" in done.stdout + done.stderr) == (0, False), done


def test_a_replaced_switch_changes_no_file(pilot, tmp_path):
    """Another box of the same name: a serial number in the inventory, nothing in the fabric."""
    text = re.sub("(?<=inventory: ).*", "inventory.yaml", (PILOT / "fabric.yaml").read_text())
    inventory = PILOT / "inventory.yaml"
    (tmp_path / "inventory.yaml").write_text(re.sub(r"SN0009\b", "SN9999", inventory.read_text()))
    (tmp_path / "fabric.yaml").write_text(
        re.sub("inventory: .*", "inventory: inventory.yaml", text)
    )
    build = of_one(Fabric.from_spec(tmp_path / "fabric.yaml").compile().build)
    before = of_one(pilot.build)
    for name, one in (("old", before), ("new", replace(build, identity=before.identity))):
        target("sonic").render(one, tmp_path / name, options=BGP)
    for old in (tmp_path / "old").glob("*/*"):
        assert old.read_text() == (tmp_path / "new" / old.parent.name / old.name).read_text()
