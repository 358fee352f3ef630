"""The library: polarfab.Fabric from a spec to tables, and everything that verbs do with them."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pytest

import polarfab
from compilers.entry_points import FUNCTIONS, registered
from controller.devices.device_push import PushSettings
from polarfab.fabric import Fabric

ROOT = Path(__file__).parents[2]
LAB = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
HARDWARE = {
    "node_types": {"leaf": {"ports": [{"name": "eth{}", "count": 8}]}},
    "generate": {"type": "leaf"},
}


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return Fabric.from_spec(LAB, HARDWARE).compile()


@pytest.fixture(scope="module")
def planes() -> Fabric:
    return Fabric.from_spec({**LAB, "planes": 2})


def test_the_page_about_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/reference/python.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.S)
    monkeypatch.chdir(tmp_path)
    exec(program, {})  # noqa: S102 - our own page; another Python would import everything anew
    printed, mistakes = capfd.readouterr()
    assert mistakes == ""
    shown = re.findall(r"# (<.*>)", program)
    assert shown
    assert [text for text in shown if text not in printed] == []
    assert "<GrowthReport lab: 6 nodes" in printed
    assert "no pair loses a packet>" in printed
    assert (tmp_path / "configs/n0/frr.conf").is_file()


def test_the_page_tells_every_method() -> None:
    page = (ROOT / "docs/reference/python.md").read_text()
    public = [name for name in dir(Fabric) if not name.startswith("_")]
    assert [name for name in public if not re.search(rf"\.{name}\b", page)] == []
    functions = [*polarfab.__all__, *registered(FUNCTIONS)]
    assert [name for name in functions if not re.search(rf"polarfab\.{name}\b", page)] == []


def test_importing_it_costs_nothing() -> None:
    heavy = [
        "numpy",
        "yaml",
        "pydantic",
        "networkx",
        "click",
        "rich",
        "compilers",
        "importlib.metadata",
    ]
    program = f"import sys, polarfab; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
    more = "polarfab.Fabric; print([m for m in ('numpy', 'yaml', 'pydantic') if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", f"import sys, polarfab; {more}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"


def test_a_mapping_and_a_file_give_the_same_tables(fabric: Fabric, tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    other = Fabric.from_spec(file, HARDWARE)
    one, two = fabric.build.tables, other.build.tables
    assert np.array_equal(one.routes.egress, two.routes.egress)
    assert np.array_equal(one.classes.port, two.classes.port)
    assert (fabric.name, fabric.topology.title()) == (other.name, other.topology.title())
    for word in ("far", "port", "host_port"):
        assert np.array_equal(*(getattr(f.build.wiring, word) for f in (fabric, other)))


def test_an_inventory_of_one_s_own(tmp_path: Path) -> None:
    file = tmp_path / "hardware.yaml"
    file.write_text(
        "node_types: {leaf: {ports: [{name: 'eth{}', count: 8}]}}\ngenerate: {type: leaf}\n"
    )
    spec = tmp_path / "fabric.yaml"
    spec.write_text("name: lab\ntopology: {family: polarfly, q: 3}\ninventory: nowhere.yaml\n")
    for wanted in (LAB, spec):
        for given in (HARDWARE, file):
            build = Fabric.from_spec(wanted, given).build
            assert build.wiring.port_names == (tuple(f"eth{n}" for n in range(1, 9)),)


def test_all_mistakes_at_once() -> None:
    with pytest.raises(polarfab.InputError) as error:
        Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 6}, "rooting": {}})
    assert [problem.key for problem in error.value.problems] == ["rooting", "topology.q"]


def test_mistakes_in_files_have_lines_beside_another_inventory(tmp_path: Path) -> None:
    spec, hardware = tmp_path / "fabric.yaml", tmp_path / "hardware.yaml"
    spec.write_text("name: lab\ntopology: {family: polarfly, q: 6}\ninventory: nowhere.yaml\n")
    hardware.write_text("generate: {type: ovs}\nracks: 3\n")
    with pytest.raises(polarfab.InputError) as error:
        Fabric.from_spec(spec, hardware)
    found = [(problem.file, problem.line, problem.key) for problem in error.value.problems]
    assert found == [(str(spec), 2, "topology.q"), (str(hardware), 2, "racks")]


def test_a_fabric_of_nothing_is_refused() -> None:
    with pytest.raises(polarfab.InputError, match="from its spec, to compile, given nothing"):
        _ = Fabric().topology


def test_scalars_of_numpy_lists_and_paths_are_taken(fabric: Fabric, tmp_path: Path) -> None:
    assert polarfab.topology("polarfly", q=np.int64(3)).graph.order == 13
    assert fabric.explain(np.int32(0), np.uint8(3)).passed
    assert fabric.verify(["link"], sample=np.int64(3), seed=np.int64(1)).passed
    saved = fabric.save(str(tmp_path / "b"))
    (done,) = saved.render("frr", str(tmp_path / "out"), nodes=["n3", "n4"], accept=[])
    assert done.nodes == 2
    designs = [polarfab.design(np.int64(8)), polarfab.design(radix=(r for r in [8]))]
    assert [len(found) > 1 for found in designs] == [True, True]
    assert polarfab.draw(fabric, racks=["0", "1"])
    assert polarfab.throughput(fabric, ["uniform"], hosts=np.int64(2), seed=np.int64(1))
    assert polarfab.simulate(fabric, loads=[0.1], hosts=np.int64(1), period=np.int64(100))


def test_words_that_are_none_are_refused(fabric: Fabric, tmp_path: Path) -> None:
    calls = {
        "failures: required some of link, node, .*given links": lambda: fabric.verify(["links"]),
        "form: required svg or html, given png": lambda: polarfab.draw(fabric, "png"),
        "given frrr; did you mean frr": lambda: fabric.render("frrr", tmp_path / "out"),
        "what: required one of distances, .*given distence; did you": lambda: polarfab.analyse(
            fabric.topology, ["distence"]
        ),
        "method: required one of auto, walk, local": lambda: fabric.verify(method="wolk"),  # type: ignore[arg-type]
        "engine: required .*given mininets.*mininet": lambda: polarfab.emulate(
            fabric,
            engine="mininets",  # type: ignore[arg-type]
        ),
    }
    for said, call in calls.items():
        with pytest.raises(polarfab.InputError, match=said):
            call()
    assert not (tmp_path / "out").exists()


def test_nothing_is_compiled_before_it_is_needed_and_then_once() -> None:
    fabric = Fabric.from_spec(LAB)
    assert repr(fabric) == "<Fabric lab: not compiled>"
    assert fabric.topology.graph.order == 13
    assert fabric.builds[0] is fabric.build
    with pytest.raises(dataclasses.FrozenInstanceError):
        fabric.folder = Path("x")  # type: ignore[misc]


def test_several_planes(planes: Fabric, tmp_path: Path) -> None:
    assert [plane.name for plane in planes.planes] == ["lab-p1", "lab-p2"]
    assert len(planes.verify().reports) == 2
    kept = planes.save(tmp_path / "build")
    assert [str(plane.folder) for plane in kept.planes] == [
        str(tmp_path / "build" / f"plane-{n}") for n in (1, 2)
    ]
    for several in (planes, kept):
        with pytest.raises(polarfab.InputError, match="the build of one plane"):
            several.explain("0", "1")
    for use in (
        lambda: polarfab.apply(planes, "http://127.0.0.1:9"),
        lambda: polarfab.push(planes, "frr", PushSettings(dry=True)),
        lambda: polarfab.rehearse(planes, planes, engine="model"),
    ):
        with pytest.raises(
            polarfab.InputError, match=r"^required the build of one plane"
        ) as refusal:
            use()
        assert gettempdir() not in str(refusal.value)  # nobody can name a plane in that folder
    assert planes.planes[1].explain(0, 1).passed
    assert [each.folder.name for each in planes.render("ovs", tmp_path / "out")] == [
        "plane-1",
        "plane-2",
    ]


def test_tables_that_lose_packets_are_not_rendered(fabric: Fabric, tmp_path: Path) -> None:
    build = fabric.build
    egress = np.roll(build.tables.routes.egress, 1, axis=1)
    routes = dataclasses.replace(build.tables.routes, egress=egress)
    tables = dataclasses.replace(build.tables, routes=routes)
    wrong = Fabric.of(dataclasses.replace(build, tables=tables))
    assert not wrong.verify().passed
    assert "FAILED" in repr(wrong.verify())
    for unproved in (wrong, Fabric.of(wrong.build)):
        with pytest.raises(
            polarfab.InputError, match=r"^required a build that has passed polarfab verify, given "
        ) as refusal:
            unproved.render("ovs", tmp_path / "out")
        assert gettempdir() not in str(refusal.value)  # nobody can do anything in that folder
        assert not (tmp_path / "out").exists()
    assert wrong.render("ovs", tmp_path / "out", unverified=True)[0].nodes == 13


def test_rendering_from_memory_is_rendering_from_the_folder(fabric: Fabric, tmp_path: Path) -> None:
    kept = fabric.save(tmp_path / "build")
    assert kept.build.identity == fabric.build.identity
    kept.verify()
    fabric.render("linux", tmp_path / "one", nodes=["n3"])
    (done,) = kept.render("linux", tmp_path / "two", nodes=["n3"])
    assert (done.nodes, done.build) == (1, kept.build.identity)
    files = {path.name: path.read_bytes() for path in (tmp_path / "two/n3").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "one/n3").iterdir()}


def test_a_fabric_in_networkx(fabric: Fabric) -> None:
    import networkx

    graph = polarfab.to_networkx(fabric)
    assert sorted(map(sorted, graph.edges)) == fabric.topology.graph.edges().tolist()
    assert networkx.diameter(graph) == 2
    wiring = fabric.build.wiring
    for u, v, edge in graph.edges(data=True):
        link = int(np.flatnonzero(wiring.far[u] == v)[0])
        assert edge["ports"][u] == wiring.port_name(u, int(wiring.port[u, link]))
        assert edge["ports"][v] == wiring.port_name(v, int(wiring.far_port[u, link]))
        assert (edge["length"] > 0, edge["cables"]) == (True, 1)
    node = graph.nodes[4]
    assert (node["name"], node["hosts"], len(node["coordinates"])) == ("n4", 1, 3)
    assert node["kind"] in fabric.topology.kinds


def test_growth_and_the_move_there(fabric: Fabric) -> None:
    growth = fabric.expand("quadric:1")
    larger = Fabric.of(growth.build)
    assert larger.verify().passed
    assert len(growth.facts["nodes_added"]) == growth.build.topology.graph.order - 13
    assert growth.csv().count("\n") == growth.facts["cables_added"] + 1
    move = fabric.plan(larger)
    assert move.lossless
    assert {s["state"] for s in move.switches} == {"stays", "new"}
    assert bool(fabric.diff(larger))
    assert not fabric.diff(fabric)
    nodes = [{"name": f"n{v}", "type": "leaf"} for v in range(13)]
    part = [*nodes[:-1], nodes[-1] | {"state": "planned"}]
    some, whole = (
        Fabric.from_spec(LAB, {"node_types": HARDWARE["node_types"], "nodes": listed})
        for listed in (part, nodes)
    )
    assert some.remaining(whole).facts["nodes_added"] == ["n12"]
    with pytest.raises(polarfab.InputError, match="quadric:2, fan:1 or nucleus"):
        fabric.expand("quadric=2")


def test_emulation_on_the_model(fabric: Fabric, tmp_path: Path) -> None:
    found = polarfab.emulate(fabric, engine="model")
    assert found.passed
    assert repr(found) == "<Emulated lab on model passed: 156 of 156 pairs delivered>"
    (file,) = found.write(tmp_path / "report.json")
    assert file.is_file()
    again = polarfab.rehearse(fabric, fabric, engine="model")
    assert again.passed


def test_graphs_without_a_fabric() -> None:
    graph = polarfab.topology("polarfly", q=5)
    found = polarfab.analyse(graph, ["distances"])
    assert found["distances"].facts["diameter"] == 2
    assert polarfab.draw(graph).startswith("<")
    assert polarfab.topology("slimfly", q=5).graph.order == 50
    names = [each.design.family for each in polarfab.design(radix=32, best=True)]
    assert "polarstar" in names
    with pytest.raises(polarfab.InputError, match="sort"):
        polarfab.design(radix=8, sort="node")
    with pytest.raises(polarfab.InputError, match="hosts: required from 1 to"):
        polarfab.design(hosts=0)
    with pytest.raises(polarfab.InputError, match=r"given no\.txt; no such file: check the name"):
        polarfab.topology("graph", file="no.txt")


PROTECTED = {**LAB, "routing": {"balance": "compact-valiant", "protect": "link"}}


def test_save_after_verify_leaves_a_build_that_may_be_used(tmp_path: Path) -> None:
    fabric = Fabric.from_spec(PROTECTED, HARDWARE).compile()
    assert fabric.verify(failures=["node"]).passed
    kept = fabric.save(tmp_path / "build")
    assert kept.proved[0].failures == ("node",)
    assert Fabric.load(tmp_path / "build").proved == kept.proved
    kept.render("frr", tmp_path / "out")
    again = kept.save(tmp_path / "copy")
    assert again.proved == kept.proved


def test_save_proves_what_the_policy_promises(tmp_path: Path) -> None:
    for planes in (1, 2):
        fabric = Fabric.from_spec({**PROTECTED, "planes": planes})
        kept = fabric.save(tmp_path / f"build{planes}")
        assert [plane.caveat or plane.delivery for plane in kept.proved] == [True] * planes
    unproved = Fabric.from_spec(PROTECTED, HARDWARE).save(tmp_path / "unproved", prove=False)
    assert [str(plane) for plane in unproved.proved] == ["nothing"]
    with pytest.raises(polarfab.InputError, match="has passed polarfab verify"):
        unproved.render("frr", tmp_path / "out")


def test_save_does_not_mark_what_verify_found_wrong(fabric: Fabric, tmp_path: Path) -> None:
    build = fabric.build
    egress = build.tables.routes.egress.copy()
    egress[0, 5] = (egress[0, 5] + 1) % 4
    routes = dataclasses.replace(build.tables.routes, egress=egress)
    tables = dataclasses.replace(build.tables, routes=routes)
    wrong = Fabric.of(dataclasses.replace(build, tables=tables, identity=""))
    good = fabric.save(tmp_path / "one")
    for _ in range(2):
        with pytest.raises(polarfab.InputError, match="one: required a build that has passed"):
            wrong.save(tmp_path / "one")
        assert Fabric.load(tmp_path / "one").proved == good.proved, "the earlier build is kept"
        assert not wrong.verify().passed
    assert str(wrong.save(tmp_path / "two", prove=False).proved[0]) == "nothing"
    wrong.render("ovs", tmp_path / "ovs", unverified=True)


def test_a_proof_marks_no_other_build(fabric: Fabric, tmp_path: Path) -> None:
    other = Fabric.from_spec(PROTECTED, HARDWARE).compile()
    proved = Fabric.of(fabric.build)
    found = proved.verify()
    kept = dataclasses.replace(proved, compiled=other.compiled).save(tmp_path / "build", False)
    with pytest.raises(polarfab.InputError, match="required the builds that were verified"):
        found.mark(kept.builds, [tmp_path / "build"])
    assert str(Fabric.load(tmp_path / "build").proved[0]) == "nothing"


def test_a_notebook_shows_pictures(fabric: Fabric, planes: Fabric) -> None:
    assert fabric._repr_svg_() == polarfab.draw(fabric)
    assert planes._repr_svg_() is None
    drawn = polarfab.draw(fabric.topology)
    assert (drawn._repr_svg_(), drawn._repr_html_()) == (str(drawn), None)
    chart = polarfab.chart(fabric, "racks")
    assert chart._repr_svg_() == chart
    page = polarfab.draw(fabric, "html")
    assert page._repr_svg_() is None
    assert (page._repr_html_() or "").startswith('<iframe srcdoc="&lt;!DOCTYPE')


def test_exceptions_of_the_documentation_are_exported() -> None:
    sources = " ".join(file.read_text() for file in (ROOT / "polarfab").glob("*.py"))
    raised = set(re.findall(r"^ +([A-Z]\w+): ", " ".join(re.findall(RAISES, sources)), re.M))
    assert {"InputError", "EmittedWrongError", "EngineError"} <= raised
    assert [name for name in raised - {"ValueError"} if not hasattr(polarfab, name)] == []


RAISES = re.compile(r'Raises:\n.*?"""', re.S)
