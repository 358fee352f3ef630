"""What an expansion moves at panels, counted from the printed lists of cords and types alone."""

import csv
import io

import numpy as np
import pytest
import yaml

from compilers.cabling.cable_schedule import CableSchedule
from compilers.expansion.growth_report import files_of
from polarfab.fabric import Fabric
from tests.compilers.cabling.test_panel_plan import spec
from tests.compilers.cabling.test_patch_panels import patched, rows_of

JELLYFISH = {"family": "jellyfish", "nodes": 30, "degree": 6, "seed": 1, "ports": 8}
RACKS = [{"name": f"R{r}", "units": 8, "row": 0, "column": r} for r in range(5)]


def in_racks(given):
    """Switches in racks of eight, and cassettes for each rack."""
    given["inventory"] |= {"racks": RACKS, "placement": {"layout": "partition"}}
    return given


CASES = {
    "patch panels": (patched(rack=8, **JELLYFISH), "switch:2"),
    "patch panels, two cables a link": (patched(rack=8, parallel=2, **JELLYFISH), "switch:1"),
    "a cassette": (spec(rack=8, **JELLYFISH), "switch:2"),
    "cassettes": (in_racks(spec(rack=8, **JELLYFISH)), "switch:2"),
    "small trunks": (in_racks(spec(rack=8, trunk="mpo8", **JELLYFISH)), "switch:1"),
    "PolarFly": (spec(q=5, rack=8, ports=10), "quadric:1"),
    "PolarFly, patch panels": (patched(q=5, rack=8, ports=10), "quadric:1"),
}


def sheets(build):
    """The list of cords by their plugs, what each panel is inside, and what links run through."""
    schedule = CableSchedule.of([build])
    (plan,) = schedule.plans
    rows = rows_of(schedule)
    known = yaml.safe_load("".join(schedule.text("cassettes")))["panels"]
    inside = {
        row[end]: known["types"][row[f"{end}_type"]]["front"]
        for row in rows
        for end in "ab"
        if row[f"{end}_type"] in known["types"]
    }
    cords = {}
    for row in rows:
        plugs = [row[word] for word in ("kind", "a", "a_port", "b", "b_port", "turned", "length_m")]
        cords[tuple(plugs)] = row
    trunks = {row["label"]: plugs for plugs, row in cords.items() if row["kind"] == "trunk"}
    links = {}
    for row in csv.DictReader(io.StringIO("".join(schedule.text("csv")))):
        ends = [(row[f"{e}_node"], row[f"{e}_port"]) for e in "ab"]
        through = [
            part if part.split(":")[0] not in trunks else (trunks[part.split(":")[0]], part[5:])
            for part in row["through"].split(" > ")
        ]
        panels = {part.split()[0] for part in row["through"].split(" > ") if " " in part}
        links[frozenset(ends)] = through, panels
    return cords, inside, links, plan


@pytest.mark.parametrize("case", CASES)
def test_what_is_pulled_plugged_and_kept(case):
    given, clusters = CASES[case]
    fabric = Fabric.from_spec(given).compile()
    report = fabric.expand(clusters, seed=7)
    (old, before, ways, _), (new, after, later, plan) = map(sheets, (fabric.build, report.build))
    replaced = {name for name in before if name in after and before[name] != after[name]}
    assert set(report.facts["panels_replaced"]) == replaced
    assert set(report.facts["panels_added"]) == after.keys() - before.keys()
    kept = {c for c in old.keys() & new.keys() if not replaced & {c[1], c[3]}}
    text = files_of([report])
    removed, added = (
        list(csv.DictReader(io.StringIO(text.get(f"{word}-cords.csv", ""))))
        for word in ("removed", "added")
    )

    def printed(rows):
        return sorted(tuple(row.items()) for row in rows)

    assert printed(removed) == printed(row for cord, row in old.items() if cord not in kept)
    assert printed(added) == printed(row for cord, row in new.items() if cord not in kept)
    for kind in (plan.words[1], "trunk", "cable"):
        count = [sum(c[0] == kind for c in part) for part in (kept, old.keys(), new.keys())]
        assert report.facts[f"{kind}s_kept"] == count[0]
        assert report.facts[f"{kind}s_pulled"] == count[1] - count[0]
        assert report.facts[f"{kind}s_plugged"] == count[2] - count[0]
    # Ends of links are sockets, so a link that stays has the same two.
    dark = [e for e in ways.keys() & later.keys() if ways[e] != later[e] or ways[e][1] & replaced]
    assert report.facts["links_interrupted"] == len(dark)
    if "PolarFly" in case:
        assert not removed
        assert not dark
    else:
        assert removed
        assert dark


def test_the_rest_of_a_partly_installed_fabric():
    given = patched(q=5, rack=6)
    whole = Fabric.from_spec(given).compile()
    some = Fabric.from_spec(given).compile(phase=2)
    report = some.remaining(whole)
    old, new = (
        {frozenset((row["a"], row["b"])) for row in map(dict, rows)}
        for rows in (_links(some), _links(whole))
    )
    cords, inside, links, _ = sheets(whole.build)
    there = set()
    for ends, (through, _) in links.items():
        if frozenset(name for name, _ in ends) in old:
            there |= {part[0] for part in through if isinstance(part, tuple)}
    trunks = {c for c in cords if c[0] == "trunk"}
    assert old < new
    assert report.facts["trunks_kept"] == len(there)
    assert report.facts["trunks_plugged"] == len(trunks) - len(there) > 0
    assert report.facts["cords_pulled"] == 0
    racks = report.facts["racks_added"]
    added = {name for name in inside if name.rpartition("-")[0] in racks}
    assert {*report.facts["panels_added"]} == added
    assert set() < added < inside.keys()


def _links(fabric):
    w = fabric.build.wiring
    return ({"a": w.names[u], "b": w.names[int(w.far[u, k])]} for u, k in np.argwhere(w.far >= 0))
