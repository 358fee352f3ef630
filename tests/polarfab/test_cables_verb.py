"""`polarfab cables`: the files of the example, JSON, and wrong options."""

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("q7") / "build"
    save(compile_fabric(load_fabric(EXAMPLES / "q7-copackaged" / "fabric.yaml")), folder)
    return folder


def graph_of(rows):
    """Adjacency by the schedule alone, bool[N, N]; no port may have two cables."""
    ends = [(row[f"{end}_node"], row[f"{end}_port"]) for row in rows for end in "ab"]
    assert len(set(ends)) == len(ends)
    number = {node: i for i, node in enumerate(sorted({node for node, _ in ends}))}
    joined = np.zeros((len(number), len(number)), np.float32)
    for row in rows:
        u, v = number[row["a_node"]], number[row["b_node"]]
        joined[u, v] = joined[v, u] = 1
    return joined


@pytest.mark.parametrize(
    ("name", "nodes", "degrees", "diameter", "bundles"),
    [
        ("q7-copackaged", 57, {7: 8, 8: 49}, 2, {5: 21, 8: 7}),
        ("polarstar-q5", 248, {9: 248}, 3, {8: 90}),
    ],
)
def test_what_a_reader_can_check_by_hand(
    polarfab, tmp_path, name, nodes, degrees, diameter, bundles
):
    """Of the files alone: node counts, degrees, diameter, the papers' bundles, the bill."""
    spec, built = EXAMPLES / name / "fabric.yaml", tmp_path / "build"
    assert polarfab("compile", spec, "-o", built, "--no-verify")[0] == 0
    for form in ("csv", "bom"):
        assert polarfab("cables", built, "--format", form, "-o", tmp_path / form)[0] == 0
    with (tmp_path / "csv").open() as file:
        rows = list(csv.DictReader(file))
    joined = graph_of(rows)
    assert len(joined) == nodes
    assert Counter(joined.sum(axis=0).astype(int).tolist()) == degrees
    reached = walks = np.eye(nodes, dtype=np.float32) + joined
    for _ in range(diameter - 1):
        assert not reached.all()
        reached = ((walks := walks @ joined + walks) > 0) | (reached > 0)
    assert reached.all()
    assert Counter(Counter(row["bundle"] for row in rows if row["bundle"]).values()) == bundles
    with (tmp_path / "bom").open() as file:
        items = [(item["kind"], int(item["quantity"])) for item in csv.DictReader(file)]
    bought = Counter()
    for kind, quantity in items:
        bought[kind] += quantity
    loose = [row for row in rows if not row["bundle"]]
    assert bought["node"] == nodes
    assert bought["connector"] == 2 * len(rows)
    assert bought["rack"] == len({row[f"{end}_rack"] for row in rows for end in "ab"})
    if bought["fibre"]:  # each bundle is one fibre
        assert (bought["cable"], bought["fibre"]) == (len(loose), sum(bundles.values()))
    else:
        assert bought["cable"] == len(rows)
        lengths = Counter(f"{row['type']} {float(row['length_m']):g}" for row in rows)
        assert sorted(lengths.values()) == sorted(q for kind, q in items if kind == "cable")


def test_json_of_the_command(polarfab, build):
    code, out, _ = polarfab("cables", build, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["cables"] == len(document["schedule"]) == 224
    assert document["cluster_pairs"] == {"5": 21, "8": 7}


def test_the_cables_of_a_rack(polarfab, build):
    """The summary was of the whole fabric, and so were the cables to hosts."""
    code, out, _ = polarfab("cables", build, "--rack", "C1", "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert code == 0
    code, out, _ = polarfab("cables", build, "--rack", "C1")
    metres = sum(float(row["length_m"]) for row in rows)
    assert (code, "materials" in out) == (0, False)
    assert out.split() == (
        f"q7-copackaged: cables with an end in C1 cables {len(rows)} metres {metres:g}".split()
    )
    code, out, _ = polarfab("cables", build, "--rack", "C1", "--format", "hosts")
    assert {row["rack"] for row in csv.DictReader(out.splitlines())} == {"C1"}


def test_panels_that_lack_a_link_leave_out_materials_alone(polarfab, tmp_path):
    for name in ("fabric.yaml", "inventory.yaml"):
        text = (EXAMPLES / "q7-panels" / name).read_text()
        more = "dead_links: [{a: s0, b: s22}]\n" if name == "inventory.yaml" else ""
        (tmp_path / name).write_text(text + more)
    code, out, err = polarfab("cables", tmp_path / "fabric.yaml")
    assert (code, len(err.splitlines())) == (0, 1), err  # that ports are planned anew
    assert "cables  223" in out
    assert "materials" not in out
