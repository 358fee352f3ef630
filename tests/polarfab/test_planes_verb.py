"""A fabric of several planes on the command line."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from compilers.tables.folders.build_folder import load
from inventory.problems import InputError
from polarfab.fabric import Fabric
from polarfab.switches import apply
from tests.polarfab.conftest import Run


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    path = tmp_path / "fabric.yaml"
    path.write_text("name: lab\ntopology: {family: polarfly, q: 3}\nplanes: 2\n")
    return path


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planes") / "build"
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "planes": 2}
    Fabric.from_spec(spec).save(folder)
    return folder


@pytest.fixture
def build(compiled: Path, tmp_path: Path) -> Path:
    """A copy of the build."""
    return Path(shutil.copytree(compiled, tmp_path / "build"))


def test_compile_and_verify(polarfab: Run, fabric: Path, tmp_path: Path) -> None:
    code, out, _ = polarfab("compile", fabric, "-o", tmp_path / "b", "--no-verify", "--json")
    report = json.loads(out)
    assert code == 0
    assert [(p["fabric"], p["nodes"], p["verified"]) for p in report["planes"]] == [
        ("lab-p1", 13, False),
        ("lab-p2", 13, False),
    ]
    assert not (tmp_path / "b" / "plane-2" / "verified.json").exists()
    code, out, _ = polarfab("verify", tmp_path / "b", "--failures", "link", "--json")
    one, two = json.loads(out)["planes"]
    assert code == 0
    assert (one.pop("fabric"), two.pop("fabric")) == ("lab-p1", "lab-p2")
    failures_of_one, failures_of_two = one.pop("failures"), two.pop("failures")
    assert one == two
    assert failures_of_one[0]["losses"][0]["failed"] == "p1-0-p1-1"
    assert json.dumps(failures_of_one).replace("p1-", "p2-") == json.dumps(failures_of_two)
    for plane in (1, 2):
        mark = json.loads((tmp_path / "b" / f"plane-{plane}" / "verified.json").read_text())
        assert mark["build"] == report["planes"][plane - 1]["build"]


def test_a_plane_is_a_build(polarfab: Run, build: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, _, err = polarfab("render", build / "plane-2", "--target", "ovs", "-o", out)
    assert code == 0, err
    assert sorted(p.name for p in out.glob("[!.]*")) == sorted(f"p2-{v}" for v in range(13))
    code, text, _ = polarfab("explain", build / "plane-2", "p2-0", "p2-5")
    assert code == 0
    assert "p2-0 to p2-5" in text


def test_render_takes_all_planes(polarfab: Run, build: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, text, _ = polarfab("render", build, "--target", "eos", "-o", out, "--json")
    planes = json.loads(text)["planes"]
    assert code == 0
    assert [(p["folder"], p["nodes"], p["files"]) for p in planes] == [
        (str(out / "plane-1"), 13, 26),
        (str(out / "plane-2"), 13, 26),
    ]
    alone = tmp_path / "alone"
    assert polarfab("render", build / "plane-2", "--target", "eos", "-o", alone)[0] == 0
    for path in alone.rglob("[!.]*.*"):
        assert (out / "plane-2" / path.relative_to(alone)).read_bytes() == path.read_bytes()
    (build / "plane-2" / "verified.json").unlink()
    code, _, err = polarfab("render", build, "--target", "eos", "-o", tmp_path / "no")
    assert (code, "plane-2" in err, (tmp_path / "no").exists()) == (2, True, False)


def test_render_one_switch(polarfab: Run, build: Path, tmp_path: Path) -> None:
    words = "render", build, "--target", "nxos", "-o"
    assert polarfab(*words, tmp_path / "out", "--node", "p2-3", "--node", "p1-3")[0] == 0
    written = sorted(p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*.cfg"))
    assert written == [Path("plane-1/p1-3/nxos.cfg"), Path("plane-2/p2-3/nxos.cfg")]
    code, text, _ = polarfab(*words, tmp_path / "one", "--node", "p2-3", "--json")
    assert (code, [p["nodes"] for p in json.loads(text)["planes"]]) == (0, [1])
    code, _, err = polarfab(*words, tmp_path / "no", "--node", "p3-3", "--node", "p9-9")
    assert code == 2
    assert "--node: required the name of a switch of the build, given p3-3; did you mean p" in err
    assert len(err.splitlines()) == 2


def test_no_node_of_what_is_for_the_whole_fabric(
    polarfab: Run, build: Path, tmp_path: Path
) -> None:
    words = "--target", "ansible", "-o", tmp_path / "out", "--node", "p1-0"
    code, _, err = polarfab("render", build / "plane-1", *words)
    assert (code, "ansible writes for the whole fabric, given p1-0" in err) == (2, True)
    assert not (tmp_path / "out").exists()


def test_a_damaged_list_of_planes(polarfab: Run, build: Path, tmp_path: Path) -> None:
    said = "required the list of a fabric's planes"
    for text in ("{", '{"planes": {"../b": ""}}'):
        (build / "planes.json").write_text(text)
        code, _, err = polarfab("render", build, "--target", "eos", "-o", tmp_path / "out")
        assert (code, said in err) == (2, True)
    (build / "planes.json").write_text('{"planes": {"plane-1": "0123456789abcdef"}}')
    code, _, err = polarfab("render", build, "--target", "eos", "-o", tmp_path / "out")
    assert (code, "not 0123456789abcdef" in err) == (2, True)


def test_one_schedule_of_all_planes(polarfab: Run, build: Path) -> None:
    code, out, _ = polarfab("cables", build, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert len(rows) == len({row["label"] for row in rows}) == 48
    assert {row["label"][:4] for row in rows} == {"P1-C", "P2-C"}
    assert {(row["label"][:3].lower(), row["a_node"][:3]) for row in rows} == {
        ("p1-", "p1-"),
        ("p2-", "p2-"),
    }
    code, out, _ = polarfab("cables", build, "--json")
    report = json.loads(out)
    assert len(report["schedule"]) == 48
    assert [plane["cables"] for plane in report["planes"]] == [24, 24]
    assert next(i["quantity"] for i in report["bom"] if i["kind"] == "node") == 26
    for form, count in (("hosts", 27), ("netbox", 49)):
        code, out, _ = polarfab("cables", build, "--format", form)
        assert len(out.splitlines()) == count
    code, out, _ = polarfab("cables", build, "--format", "csv", "--rack", "p2-fan1")
    assert {row["label"][:3] for row in csv.DictReader(io.StringIO(out))} == {"P2-"}
    code, out, _ = polarfab("cables", build)
    assert "lab-p2: cables" in out
    assert out.count("materials") == 1


def test_verbs_of_one_plane_say_so(polarfab: Run, build: Path) -> None:
    code, _, err = polarfab("explain", build, "0", "1")
    assert code == 2
    assert f"given a folder of several planes; name one of them, such as {build}/plane-1" in err


def test_a_move_to_several_planes_is_not_asked_for(polarfab: Run, build: Path) -> None:
    """The controller was asked to move to the first plane, and only then the folder was refused."""
    code, _, err = polarfab("apply", build, "--to", "http://127.0.0.1:9")
    assert code == 2
    assert f"given a folder of several planes; name one of them, such as {build}/plane-1" in err
    with pytest.raises(InputError, match="the build of one plane"):
        apply(Fabric.load(build), "http://127.0.0.1:9")


def test_a_plug_in_the_wrong_plane(polarfab: Run, fabric: Path, tmp_path: Path) -> None:
    """Of one plane a link is missing, so that it is narrower."""
    (tmp_path / "i.yaml").write_text(
        "generate: {type: copackaged-4x8}\ndead_links: [{a: p2-n0, b: p2-n1}]\n"
    )
    fabric.write_text(fabric.read_text() + "inventory: i.yaml\n")
    build = tmp_path / "build"
    code, _, err = polarfab("compile", fabric, "-o", build)
    assert code == 0, err
    schedule = polarfab("cables", build, "--format", "csv")[1]
    words = ("a_node", "a_port", "b_node", "b_port")
    rows = [[row[w] for w in words] for row in csv.DictReader(io.StringIO(schedule))]
    assert len(rows) == 47
    facts = tmp_path / "facts.csv"

    def told() -> None:
        head = "node,port,neighbour,neighbour_port\n"
        facts.write_text(head + "".join(",".join(row) + "\n" for row in rows))

    told()
    assert polarfab("check", "wiring", build, facts)[0] == 0
    one = next(row for row in rows if row[0].startswith("p1"))
    two = next(row for row in rows if row[0].startswith("p2"))
    one[2:], two[2:] = two[2:], one[2:]
    told()
    code, out, _ = polarfab("check", "wiring", build, facts, "--json")
    (move,) = json.loads(out)["moves"]
    assert (code, move["kind"]) == (1, "swap")
    assert move["a"]["node"][:3] != move["b"]["node"][:3]
    code, out, err = polarfab("check", "wiring", build / "plane-1", facts, "--json")
    report = json.loads(out)
    assert code == 1
    assert len(report["missing"]) == 1
    assert report["strangers"][0]["neighbour"].startswith("p2-")


def test_as_wired_holds_all_planes(polarfab: Run, fabric: Path, tmp_path: Path) -> None:
    """Plugs exchanged at a node of plane 2, and a cable between planes, which serves no link."""
    fabric.write_text(fabric.read_text() + "inventory: i.yaml\n")
    (tmp_path / "i.yaml").write_text("generate: {type: copackaged-4x8}\n")
    build = tmp_path / "build"
    assert polarfab("compile", fabric, "-o", build)[0] == 0
    words = ("a_node", "a_port", "b_node", "b_port")
    schedule = csv.DictReader(io.StringIO(polarfab("cables", build, "--format", "csv")[1]))
    rows = [[row[word] for word in words] for row in schedule]
    mine = [row for row in rows if row[0] == "p2-n1"]
    mine[0][1], mine[1][1] = mine[1][1], mine[0][1]
    lost = next(row for row in rows if row[0] == "p1-n10")
    lost[2:] = ["p2-n10", "oio3/7"]
    facts, wired = tmp_path / "facts.csv", tmp_path / "wired.yaml"
    head = "node,port,neighbour,neighbour_port\n"
    facts.write_text(head + "".join(",".join(row) + "\n" for row in rows))
    code, _, err = polarfab("check", "wiring", build, facts, "--as-wired", wired)
    assert code == 1
    assert "1 cables join what the fabric does not, the first p1-n10" in err
    (tmp_path / "i.yaml").write_text("generate: {type: copackaged-4x8}\n" + wired.read_text())
    again = tmp_path / "again"
    assert polarfab("compile", fabric, "-o", again, "--quick")[0] == 0
    code, out, _ = polarfab("check", "wiring", again, facts, "--json")
    report = json.loads(out)
    assert (report["planned"], report["missing"], len(report["extra"])) == (47, [], 1)


def test_nodes_in_places_of_another_plane_are_told_with_the_plane(
    polarfab: Run, fabric: Path, tmp_path: Path
) -> None:
    build = tmp_path / "build"
    assert polarfab("compile", fabric, "-o", build)[0] == 0
    text = polarfab("cables", build, "--format", "csv")[1]
    swapped = {"p1-3": "p2-4", "p2-4": "p1-3"}
    rows = []
    for row in csv.DictReader(io.StringIO(text)):
        nodes = [swapped.get(row[word], row[word]) for word in ("a_node", "b_node")]
        rows.append([nodes[0], row["a_port"], nodes[1], row["b_port"]])
    facts, wired = tmp_path / "facts.csv", tmp_path / "wired.yaml"
    head = "node,port,neighbour,neighbour_port\n"
    facts.write_text(head + "".join(",".join(row) + "\n" for row in rows))
    polarfab("check", "wiring", build, facts, "--as-wired", wired)
    assert "#   p1-3: plane 2, vertex 4\n" in wired.read_text()
    assert "#   p2-4: plane 1, vertex 3\n" in wired.read_text()


def test_throughput_of_all_planes(polarfab: Run, fabric: Path, tmp_path: Path) -> None:
    """Plane 2 lacks a link, so it carries less; together they carry the mean of both."""
    fabric.write_text(fabric.read_text() + "inventory: i.yaml\n")
    text = "generate: {type: copackaged-4x8}\ndead_links: [{a: p2-n0, b: p2-n1}]\n"
    (tmp_path / "i.yaml").write_text(text)
    build = tmp_path / "build"
    assert polarfab("compile", fabric, "-o", build, "--quick")[0] == 0
    words = "--pattern", "uniform", "--pattern", "tornado"
    code, out, _ = polarfab("throughput", build, "--json", *words)
    report = json.loads(out)
    one, two = report["planes"]
    assert (code, report["ports"]) == (0, 2)
    assert [one["fabric"], two["fabric"]] == ["lab-p1", "lab-p2"]
    alone = json.loads(polarfab("throughput", build / "plane-2", "--json", *words)[1])
    assert {"fabric": "lab-p2", **alone} == two
    for whole, first, second in zip(
        report["patterns"], one["patterns"], two["patterns"], strict=True
    ):
        shares = first["minimal"]["share"], second["minimal"]["share"]
        assert whole["minimal"] == pytest.approx(sum(shares) / 2)
        assert (whole["pattern"], whole["as_emitted"]) == (first["pattern"], None)
    assert one["patterns"][0] != two["patterns"][0]
    code, out, _ = polarfab("throughput", build, *words)
    assert "all 2 planes: of what a host's 2 ports carry together" in out
    fabric.write_text("{name: lab, topology: {family: polarfly, q: 2}, planes: 2}\n")
    assert polarfab("compile", fabric, "-o", tmp_path / "small", "--quick")[0] == 0
    out = polarfab("throughput", tmp_path / "small", "--pattern", "adversarial")[1]
    assert out.count("adversarial") == 3
    assert "%" not in out  # no switch sends to another


def test_diff_and_plan_go_plane_by_plane(polarfab: Run, fabric: Path, tmp_path: Path) -> None:
    fabric.write_text(fabric.read_text() + "inventory: i.yaml\n")
    (tmp_path / "i.yaml").write_text("generate: {type: copackaged-4x8}\n")
    whole, less = tmp_path / "whole", tmp_path / "less"
    assert polarfab("compile", fabric, "-o", whole, "--quick")[0] == 0
    text = "generate: {type: copackaged-4x8}\ndead_links: [{a: p2-n0, b: p2-n1}]\n"
    (tmp_path / "i.yaml").write_text(text)
    assert polarfab("compile", fabric, "-o", less, "--quick")[0] == 0
    code, out, _ = polarfab("diff", less, "--from", whole, "--json")
    report = json.loads(out)
    assert (code, report["differ"]) == (1, True)
    one, two = report["planes"]
    assert (one["fabric"], one["cables_removed"], one["switches"]) == ("lab-p1", [], [])
    assert (two["fabric"], len(two["cables_removed"])) == ("lab-p2", 1)
    code, out, _ = polarfab("diff", less, "--from", whole, "--target", "eos", "--json")
    targets = [(plane["fabric"], plane["target"]) for plane in json.loads(out)["planes"]]
    assert (code, targets) == (1, [("lab-p1", "eos"), ("lab-p2", "eos")])
    assert polarfab("diff", whole, "--from", whole)[0] == 0

    code, out, _ = polarfab("plan", less, "--from", whole, "--json")
    report = json.loads(out)
    one, two = report["planes"]
    assert (code, report["lossless"]) == (int(not two["lossless"]), two["lossless"])
    assert (one["lossless"], one["loss"]["cables"], len(two["loss"]["cables"])) == (True, [], 1)
    code, out, err = polarfab("plan", less, "--from", whole)
    assert "plane lab-p1" in out
    assert "plane lab-p2" in out
    assert err.startswith("lab-p2: ")
    code, _, err = polarfab("diff", less / "plane-1", "--from", whole)
    assert code == 2
    assert f"required 2 planes, as in {whole}, given 1 plane; name folders with as many" in err


def test_all_planes_grow(polarfab: Run, fabric: Path, tmp_path: Path) -> None:
    """Two planes share racks, so new nodes stand where neither has any."""
    nodes = "".join(
        f"  - {{name: p{1 + i % 2}n{i // 2}, type: copackaged-4x8, plane: {1 + i % 2}, rack: r0}}\n"
        for i in range(26)
    )
    text = f"racks: [{{name: r0, units: 42}}]\nnodes:\n{nodes}"
    (tmp_path / "i.yaml").write_text(text)
    fabric.write_text(fabric.read_text() + "inventory: i.yaml\n")
    build, larger = tmp_path / "build", tmp_path / "larger"
    code, _, err = polarfab("compile", fabric, "-o", build, "--quick")
    assert code == 0, err
    words = "--clusters", "quadric:1", "-o", larger
    code, out, err = polarfab("expand", build, *words, "--json")
    assert code == 0, err
    report = json.loads(out)
    assert [plane["fabric"] for plane in report["planes"]] == ["lab-p1", "lab-p2"]
    assert report["nodes_added"] == 8
    assert report["cables_added"] == sum(plane["cables_added"] for plane in report["planes"])
    added = list(csv.DictReader((tmp_path / "larger-added-cables.csv").open()))
    assert len(added) == report["cables_added"] == len({row["label"] for row in added})
    places = set()
    for plane in (1, 2):
        known = load(larger / f"plane-{plane}").hardware
        assert known is not None
        assert (larger / f"plane-{plane}" / "verified.json").is_file()
        racks = [known.rack_names[r] for r in known.rack.tolist()]
        places |= set(zip(racks, known.unit.tolist(), strict=True))
    assert len(places) == 2 * 17
    code, out, err = polarfab("plan", larger, "--from", build, "--json")
    assert (code, json.loads(out)["lossless"]) == (0, True), err
    code, out, err = polarfab("expand", build, "--from", build, "--json")
    assert (code, json.loads(out)["nodes_added"]) == (0, 0), err


def test_emulate_takes_all_planes(polarfab: Run, build: Path, fabric: Path, tmp_path: Path) -> None:
    for source in (fabric, build):
        code, out, err = polarfab("emulate", source, "--engine", "model", "--json")
        report = json.loads(out)
        assert (code, report["passed"], report["scenario"]) == (0, True, "lab"), err
        assert [plane["pairs"] for plane in report["planes"]] == [156, 156]
    words = "--engine", "model", "--report", tmp_path / "report.html"
    code, out, _ = polarfab("emulate", build, *words)
    assert (code, "all planes, at first" in out) == (0, True)
    assert "all planes, at first" in (tmp_path / "report.html").read_text()
    code, _, err = polarfab("rehearse", fabric, "--from", fabric)
    assert code == 2
    assert "fabric.yaml:3: planes: required one plane here, given 2; compile it, and name" in err


def test_one_plane_over_several_and_back(polarfab: Run, build: Path, fabric: Path) -> None:
    fabric.write_text(fabric.read_text().replace("planes: 2\n", ""))
    code, _, err = polarfab("compile", fabric, "-o", build)
    assert (code, "required an earlier build of one plane, given one of 2" in err) == (2, True)
    Fabric.from_spec(fabric).save(build)
    assert (build / "verified.json").is_file()
    assert not (build / "plane-1").exists()


def test_export_holds_all_planes(polarfab: Run, fabric: Path, tmp_path: Path) -> None:
    with fabric.open("a") as file:
        file.write("inventory: i.yaml\n")
    (tmp_path / "i.yaml").write_text("generate: {type: copackaged-4x8}\n")
    code, _, err = polarfab("inventory", "export", fabric, "-o", tmp_path / "one")
    assert code == 0, err
    (tmp_path / "i.yaml").unlink()
    code, out, err = polarfab(
        "inventory", "import", tmp_path / "one", "-o", tmp_path / "i.yaml", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["nodes"] == 26
    code, _, err = polarfab("inventory", "export", fabric, "-o", tmp_path / "two")
    assert code == 0, err
    for path in (tmp_path / "one").rglob("*.*"):
        again = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert again.read_text() == path.read_text(), path.name
