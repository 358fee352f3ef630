"""`polarfab check wiring` as an engineer meets it."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from compilers.cabling.cable_schedule import CableSchedule
from polarfab.fabric import Fabric

FABRIC = "name: lab\ntopology: {family: polarfly, q: 3}\ninventory: inventory.yaml\n"
INVENTORY = (
    "node_types:\n  leaf:\n    ports: [{name: 'Ethernet{}', count: 6, label: 'P{}'}]\nnodes:\n"
)
INVENTORY += "".join(
    f"  - {{name: n{i}, type: leaf, guid: '0x{i + 1:016x}', management: 192.0.2.{i + 1}}}\n"
    for i in range(13)
)
COLUMNS = ["a_node", "a_port", "b_node", "b_port"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a build, its spec and inventory, and its cables."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "fabric.yaml").write_text(FABRIC)
    (folder / "inventory.yaml").write_text(INVENTORY)
    fabric = Fabric.from_spec(folder / "fabric.yaml").save(folder / "build")
    (folder / "cables.csv").write_text("".join(CableSchedule.of(fabric.builds).text("csv")))
    return folder


@pytest.fixture
def plan(tmp_path: Path, built: Path) -> tuple[Path, list[list[str]]]:
    """The build, and its cables as rows of COLUMNS; its other files are in a folder of the test."""
    build = built / "build"
    for name in ("fabric.yaml", "inventory.yaml", "cables.csv"):
        shutil.copy(built / name, tmp_path)
    with (tmp_path / "cables.csv").open() as file:
        return build, [[row[word] for word in COLUMNS] for row in csv.DictReader(file)]


def table(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return path


def test_as_planned(polarfab, plan, tmp_path: Path) -> None:
    build, _ = plan
    code, out, err = polarfab("check", "wiring", build, tmp_path / "cables.csv")
    assert (code, err) == (0, "")
    assert "moves to repair" in out


def test_two_plugs_of_a_node(polarfab, plan, tmp_path: Path) -> None:
    build, rows = plan
    mine = [(row, row.index("n5")) for row in rows if "n5" in row]
    (one, i), (two, j) = mine[:2]
    one[i + 1], two[j + 1] = two[j + 1], one[i + 1]
    facts = table(tmp_path / "facts.csv", rows)
    code, out, _ = polarfab("check", "wiring", build, facts, "--json")
    report = json.loads(out)
    assert code == 1
    ports = sorted([one[i + 1], two[j + 1]])
    (move,) = report["moves"]
    assert move["kind"] == "swap"
    assert sorted([move["a"]["port"], move["b"]["port"]]) == ports
    assert move["text"].endswith("at node n5")
    assert (report["right"], len(report["misplaced"])) == (len(rows) - 2, 2)
    assert move["text"] in polarfab("check", "wiring", build, facts)[1]


def test_taken_as_it_is_wired(polarfab, plan, tmp_path: Path) -> None:
    build, rows = plan
    for node in ("n5", "n8"):
        (one, i), (two, j) = [(row, row.index(node)) for row in rows if node in row][:2]
        one[i + 1], two[j + 1] = two[j + 1], one[i + 1]
    degree = {n: sum(n in row for row in rows) for n in (f"n{i}" for i in range(13))}
    x, y = [n for n in degree if degree[n] == 4 and n not in ("n5", "n8")][:2]
    other = {x: y, y: x}
    turned = [[other.get(a, a), p, other.get(b, b), r] for a, p, b, r in rows]
    facts = table(tmp_path / "facts.csv", turned)
    assert polarfab("check", "wiring", build, facts, "--as-wired", tmp_path / "cables.yaml")[0] == 1
    text = (tmp_path / "cables.yaml").read_text()
    inventory = INVENTORY
    for name, place in ((x, y), (y, x)):
        assert f"#   {name}: vertex {place[1:]}\n" in text
        inventory = inventory.replace(f"{{name: {name},", f"{{name: {name}, vertex: {place[1:]},")
    (tmp_path / "inventory.yaml").write_text(inventory + text)
    again = tmp_path / "again"
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", again)[0] == 0
    assert polarfab("check", "wiring", again, facts)[0] == 0


def test_labels_stay_when_it_is_taken_as_wired(polarfab, plan, tmp_path: Path) -> None:
    _, rows = plan
    a, a_port, b, b_port = rows[0]
    cable = f"cables: [{{a: {a}, a_port: {a_port}, b: {b}, b_port: {b_port}, label: long-one}}]\n"
    (tmp_path / "inventory.yaml").write_text(INVENTORY + cable)
    build, facts, wired = tmp_path / "labelled", tmp_path / "facts.csv", tmp_path / "cables.yaml"
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", build, "--no-verify")[0] == 0
    table(facts, rows)
    polarfab("check", "wiring", build, facts, "--as-wired", wired)
    assert wired.read_text().count("label: long-one") == 1


def ends(rows: list[list[str]]) -> set[frozenset[str]]:
    return {frozenset((row[0], row[2])) for row in rows}


def test_links_that_changed(polarfab, plan, tmp_path: Path) -> None:
    """One cable missing; two whose far ends were exchanged join what the fabric does not."""
    build, rows = plan
    before = ends(rows)
    one = rows[1]
    two = next(
        row
        for row in rows[2:]
        if len({*one[::2], *row[::2]}) == 4
        and not {frozenset((one[0], row[2])), frozenset((row[0], one[2]))} & before
    )
    one[2:], two[2:] = two[2:], one[2:]
    facts = table(tmp_path / "facts.csv", rows[1:])
    gone = before - ends(rows[1:])
    code, _, err = polarfab(
        "check", "wiring", build, facts, "--as-wired", tmp_path / "as-wired.yaml"
    )
    assert code == 1
    assert "3 links of the fabric are not there: they are in dead_links" in err
    assert "2 cables join what the fabric does not, the first n" in err
    (tmp_path / "inventory.yaml").write_text(INVENTORY + (tmp_path / "as-wired.yaml").read_text())
    again = tmp_path / "again"
    code, out, _ = polarfab("compile", tmp_path / "fabric.yaml", "-o", again, "--json")
    assert code == 0
    assert (json.loads(out)["links"], json.loads(out)["verified"]) == (len(before) - 3, True)
    left = json.loads(polarfab("cables", again, "--json")[1])["schedule"]
    assert {frozenset((c["a_node"], c["b_node"])) for c in left} == before - gone
    wired = {frozenset(((r[0], r[1]), (r[2], r[3]))) for r in rows[1:]}
    for c in left:
        assert frozenset(((c["a_node"], c["a_port"]), (c["b_node"], c["b_port"]))) in wired
    code, out, _ = polarfab("check", "wiring", again, facts, "--json")
    report = json.loads(out)
    assert code == 1
    assert [move["kind"] for move in report["moves"]] == ["remove", "remove"]


def test_a_second_cable_for_a_link(polarfab, plan, tmp_path: Path) -> None:
    build, rows = plan
    twice = [rows[0][0], "Ethernet6", rows[0][2], "Ethernet6"]
    facts = table(tmp_path / "facts.csv", [twice, *rows])
    out = tmp_path / "as-wired.yaml"
    code, _, err = polarfab("check", "wiring", build, facts, "--as-wired", out)
    assert code == 1
    assert "1 cables join what the fabric does not" in err
    assert "dead_links" not in out.read_text()
    assert "Ethernet6" not in out.read_text()


def test_guids_labels_and_addresses_name_nodes(polarfab, plan, tmp_path: Path) -> None:
    build, rows = plan
    number = {f"n{i}": i + 1 for i in range(13)}
    half = [
        [f"192.0.2.{number[a]}", p.replace("Ethernet", "P"), f"0x{number[b]:016X}", r]
        for a, p, b, r in rows
    ]
    assert polarfab("check", "wiring", build, table(tmp_path / "facts.csv", half))[0] == 0
    lines: list[str] = []
    for i in range(13):
        lines.append(f'Switch\t6 "S-{i + 1:016x}"\t\t# "sw" base port 0 lid {i} lmc 0')
        for a, p, b, r in rows:
            for near, port, far, far_port in ((a, p, b, r), (b, r, a, p)):
                if near == f"n{i}":
                    lines.append(f'[{port[8:]}]\t"S-{number[far]:016x}"[{far_port[8:]}]\t\t# "sw"')
    (tmp_path / "ib.txt").write_text("\n".join(lines))
    assert polarfab("check", "wiring", build, tmp_path / "ib.txt")[0] == 0


def test_a_stranger_in_the_place_of_a_planned_cable(polarfab, plan, tmp_path: Path) -> None:
    """The node of the other end says nothing: all its other cables are missing."""
    build, rows = plan
    row = next(row for row in rows if "n5" in row)
    end = row.index("n5")
    far = row[2 - end]
    kept = [one for one in rows if far not in one]
    facts = table(tmp_path / "facts.csv", [*kept, [*row[end : end + 2], "printer", "1"]])
    code, out, _ = polarfab("check", "wiring", build, facts, "--quiet")
    where = f"{far} {row[3 - end]}"
    assert (code, f"printer at n5 {row[end + 1]}, whose cable should lead to {where}" in out) == (
        1,
        True,
    )
    report = json.loads(polarfab("check", "wiring", build, facts, "--json")[1])
    missing = [frozenset((cable["a"]["node"], cable["b"]["node"])) for cable in report["missing"]]
    lacking = ends(rows) - ends(kept) - ends([row])
    assert set(missing) == {cable for cable in lacking if cable & {near for near, *_ in kept}}
    assert {move["kind"] for move in report["moves"]} == {"add"}
    assert f"neither read nor seen by a neighbour: {far}; is the power on?" in out
    assert report["strangers"][0]["planned"] == {"node": far, "port": row[3 - end]}


def test_trunks_are_swapped_before_any_move(polarfab, tmp_path: Path) -> None:
    """Of two trunks in each other's place, the plugs of a cassette, not ten cables."""
    example = Path(__file__).parents[2] / "examples" / "q7-panels" / "fabric.yaml"
    build, facts = tmp_path / "build", tmp_path / "cables.csv"
    assert polarfab("compile", example, "-o", build)[0] == 0
    assert polarfab("cables", build, "--format", "csv", "-o", facts)[0] == 0
    with facts.open() as file:
        rows = list(csv.DictReader(file))
    ends = ("b_node", "b_port")
    ones, others = ([row for row in rows if f" {t}:" in row["through"]] for t in ("T0020", "T0021"))
    for one in ones:
        place = one["through"].split(":")[1].split()[0]
        (other,) = (row for row in others if f":{place} " in row["through"])
        for word in ends:
            one[word], other[word] = other[word], one[word]
    plan = [[row[word] for word in COLUMNS] for row in rows]
    code, out, _ = polarfab("check", "wiring", build, table(facts, plan), "--quiet")
    assert code == 1
    said = ("trunks T0020", "check again before any move below", "repair, in this order")
    assert sorted(said, key=out.index) == list(said)
