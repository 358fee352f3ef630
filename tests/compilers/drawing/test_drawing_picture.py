"""Pictures say what the graph is: every vertex, every link, every cable of a highlighted pair."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from compilers.drawing.page import MOST_PAGE_NODES
from compilers.drawing.picture import (
    MOST_PICTURE_NODES,
    Subject,
    draw,
    subject_of_build,
    subject_of_topology,
)
from compilers.topology.families import build_topology
from compilers.topology.layout import layout, links_between
from compilers.wiring.shared_risk import find_group
from inventory.problems import InputError
from tests.compilers.modular import modular
from tests.compilers.routed import routed

SVG = "{http://www.w3.org/2000/svg}"


def subject(family: str, **parameters: int | str) -> Subject:
    return subject_of_topology(build_topology(family, parameters))


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314


def paths(root: ET.Element) -> dict[str, ET.Element]:
    found = [path for path in root.iter(f"{SVG}path") if path.get("data-lines")]
    return {path.get("class", "").removeprefix("links "): path for path in found}


def ends(path: ET.Element) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    pieces = re.findall(r"M(\S+) (\S+)L([^M ]+) ([^M]+)", path.get("d", ""))
    assert len(pieces) == int(path.get("data-lines", "0")) == path.get("d", "").count("M")
    return [((float(a), float(b)), (float(c), float(d))) for a, b, c, d in pieces]


def vertices(root: ET.Element) -> dict[tuple[float, float], int]:
    found = {
        (float(use.get("x", "")), float(use.get("y", ""))): int(use.get("data-vertex", ""))
        for use in root.iter(f"{SVG}use")
    }
    assert len(found) == sum(1 for _ in root.iter(f"{SVG}use"))
    return found


def drawn_links(root: ET.Element, *names: str) -> set[tuple[int, int]]:
    at = vertices(root)
    found = [ends(paths(root)[name]) for name in names]
    return {(min(pair), max(pair)) for each in found for u, v in each for pair in [(at[u], at[v])]}


@pytest.mark.parametrize(
    "given",
    [
        subject("polarfly", q=7),
        subject("polarfly", q=8),
        subject("pn", q=4),
        subject("oft", q=3),
    ],
    ids=lambda given: given.title,
)
def test_every_vertex_and_link_is_drawn(given: Subject) -> None:
    root = parsed(draw(given, form="svg"))
    graph = given.topology.graph
    assert sorted(vertices(root).values()) == list(range(graph.order))
    assert drawn_links(root, "between", "inside") == set(map(tuple, graph.edges().tolist()))
    assert {use.get("href") for use in root.iter(f"{SVG}use")} == {
        f"#n{kind}" for kind in np.unique(given.topology.kind)
    }


def test_a_large_fabric_has_bundles_between_racks() -> None:
    given = subject("polarfly", q=37)
    root = parsed(draw(given, form="svg"))
    between = paths(root)["between"]
    assert len(ends(between)) == 38 * 37 // 2
    total = int(between.get("data-links", "")) + len(drawn_links(root, "inside"))
    assert total == given.topology.graph.size


def test_polarstar_has_supernodes_in_clusters() -> None:
    q, members = 5, 8
    given = subject("polarstar", q=q, supernode="inductive-quad", degree=3)
    root = parsed(draw(given, form="svg"))
    structure = build_topology("polarfly", {"q": q})
    assert len(vertices(root)) == given.topology.graph.order
    discs = [each for each in root.iter(f"{SVG}circle") if "disc" in each.get("class", "")]
    assert len(discs) == structure.graph.order
    bundles = [paths(root)[name] for name in ("between", "cluster")]
    assert sum(len(ends(each)) for each in bundles) == structure.graph.size
    between = sum(int(each.get("data-links", "")) for each in bundles)
    assert between == members * structure.graph.size
    assert between + len(drawn_links(root, "inside")) == given.topology.graph.size


@pytest.mark.parametrize(("pair", "links"), [("quadrics,fan3", 8), ("1,7", 5)])
def test_a_pair_shows_its_cables(pair: str, links: int) -> None:
    """q + 1 links to the quadrics, q - 2 between fans (PolarFly paper, Propositions V.3, V.4)."""
    given = subject("polarfly", q=7)
    root = parsed(draw(given, form="svg", marked=tuple(pair.split(","))))
    shown = drawn_links(root, "marked")
    cables = [text.text or "" for text in root.iter(f"{SVG}text") if text.get("class") == "cable"]
    assert len(shown) == len(cables) == links
    wiring = given.wiring
    for cable in cables:
        (u, port), (v, far) = (end.split(":") for end in cable.split(" – "))
        assert (min(int(u), int(v)), max(int(u), int(v))) in shown
        link = wiring.far[int(u)].tolist().index(int(v))
        assert wiring.port_name(int(u), int(wiring.port[int(u), link])) == port
        assert wiring.port_name(int(v), int(wiring.far_port[int(u), link])) == far


def test_a_rack_shows_all_that_leaves_it() -> None:
    given = subject("polarfly", q=7)
    racks = layout(given.topology)
    root = parsed(draw(given, form="svg", marked=("fan2",)))
    leaving = drawn_links(root, "marked")
    assert len(leaving) == links_between(given.topology.graph, racks)[2].sum() - 6 - 3
    assert all((racks.rack[u] == 2) != (racks.rack[v] == 2) for u, v in leaving)
    marked = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "rack marked"]
    assert len(marked) == 1


def test_a_long_cable_list_is_cut_and_says_so() -> None:
    root = parsed(draw(subject("polarfly", q=8), form="svg", marked=("0", "1")))
    assert all("more" not in (text.text or "") for text in root.iter(f"{SVG}text"))
    given = subject("oft", q=4)
    cut = parsed(draw(given, form="svg", marked=("leaf", "spine")))
    cables = [text.text or "" for text in cut.iter(f"{SVG}text") if text.get("class") == "cable"]
    more = re.fullmatch(r"… and (\d+) more", cables[-1])
    assert more
    assert len(cables) - 1 + int(more[1]) == given.topology.graph.size


def test_names_are_written_and_escaped() -> None:
    given = subject("polarfly", q=2)
    names = ("<&\"'>", *(f"a-long-name-{v:04}" for v in range(1, 7)))
    named = replace(given, wiring=replace(given.wiring, names=names))
    root = parsed(draw(named, form="svg"))
    written = [t.text or "" for t in root.iter(f"{SVG}text") if "name of" in t.get("class", "")]
    assert "<&\"'>" in written
    assert "a-long-name-0…" in written or "a-long-name-…" in written
    titles = {(title.text or "").split("\n")[0] for title in root.iter(f"{SVG}title")}
    assert set(names) <= titles
    page = draw(named, form="html")
    assert "<&" not in page.split('id="data">')[1].split("</script>")[0]


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (("fan8",), "given fan8; did you mean fan7?"),
        (("1", "fan1"), "required two different clusters, given 1 and fan1"),
    ],
)
def test_racks_that_are_not_there(marked: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        draw(subject("polarfly", q=7), form="svg", marked=marked)


def test_a_layout_that_is_not_there_names_racks_where_the_fabric_has_them() -> None:
    in_racks = subject_of_build(modular(4, 2))
    for given, names in (
        (subject("polarfly", q=4), "fans, stars"),
        (in_racks, "fans, stars, racks"),
    ):
        with pytest.raises(InputError, match=f"layout: required {names}, given rows"):
            draw(given, form="svg", layout_name="rows")


def test_fabrics_that_are_too_large() -> None:
    given = subject("polarfly", q=59)
    assert MOST_PAGE_NODES < given.topology.graph.order < MOST_PICTURE_NODES
    with pytest.raises(InputError, match="at most 3,000 nodes in a page, given 3,541"):
        draw(given, form="html")


def test_too_large_for_a_picture_names_a_verb_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message named an option of it without a value."""
    monkeypatch.setattr("compilers.drawing.picture.MOST_PICTURE_NODES", 12)
    message = "at most 12 nodes in a picture, given 13; write the graph .* by polarfab export$"
    with pytest.raises(InputError, match=message):
        draw(subject("polarfly", q=3), form="svg")


@pytest.mark.parametrize(
    ("parameters", "wide"),
    [({"q": 3, "degree": 4}, False), ({"q": 2, "degree": 255}, True)],
    ids=["narrow", "wide"],
)
def test_the_page_holds_what_the_tables_say(parameters: dict[str, int], wide: bool) -> None:
    given = subject("polarstar", supernode="complete", **parameters)
    data = json.loads(draw(given, form="html").split('id="data">')[1].split("</script>")[0])
    assert data["wide"] == wide
    following = np.frombuffer(base64.b64decode(data["next"]), "<u2" if wide else "u1")
    order = given.topology.graph.order
    links = following.reshape(order, order)
    assert (np.diag(links) == links.max()).all()
    near = given.topology.graph.padded()
    at, home = np.arange(order)[:, None], np.arange(order)
    for _ in range(given.topology.diameter):
        link = links[at, home]
        at = np.where(at == home, at, near[at, np.where(at == home, 0, link)])
    assert (at == home).all()
    u, v = given.topology.graph.edges().T
    assert (near[u, links[u, v]] == v).all()
    assert data["links"] == [given.topology.graph.neighbours(v).tolist() for v in range(order)]


@pytest.mark.parametrize("q", [3, 8])
def test_the_page_holds_the_links_that_share_traffic(q: int) -> None:
    build = routed(q=q, spread=True)
    page = draw(subject_of_build(build), form="html")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    order, tables = build.tables.switches, build.tables.classes
    bits = np.frombuffer(base64.b64decode(data["alternates"]), np.uint8)
    shared = np.unpackbits(bits.reshape(order, data["classes"], -1), axis=2, bitorder="little")
    egress = np.frombuffer(base64.b64decode(data["egress"]), "<u2").reshape(order, order)
    for s, d in permutations(range(0, order, q), 2):
        k, ports = int(egress[s, d]), build.wiring.port[s].tolist()
        weights = zip(tables.alternate[s, k], tables.weight[s, k, 1:], strict=True)
        links = [ports.index(port) for port, weight in weights if port and weight]
        assert np.flatnonzero(shared[s, k]).tolist() == sorted(links)


def test_links_of_a_module_are_highlighted_and_listed() -> None:
    build = modular(5, 2)
    group = find_group(build.wiring, build.hardware, "module:n3/m1")
    root = parsed(draw(subject_of_build(build), form="svg", marked=("module:n3/m1",)))
    assert drawn_links(root, "marked") == {*group.links}
    text = "".join(root.itertext())
    assert "2 links of module:n3/m1" in text
    assert text.count("n3:m1/") == 2
    node = parsed(draw(subject_of_build(build), form="svg", marked=("rack:rack0",)))
    assert len(drawn_links(node, "marked")) > 8
    with pytest.raises(InputError, match="module:n3/m1"):
        draw(subject_of_build(build), form="svg", marked=("module:n3/m",))
    with pytest.raises(InputError, match="svg"):
        draw(subject_of_build(build), form="html", marked=("module:n3/m1",))
