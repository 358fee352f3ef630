"""A family and a balance of another package: compiled, proved, rendered, emulated."""

from __future__ import annotations

import json

import pytest

from tests.polarfab.makers import install, polarfab

PACKAGE = '''
import numpy as np
from polarfab import Balance, Family, Topology
from compilers.topology.adjacency import Graph
from inventory.problems import Problem


class Circulant(Family):
    """n switches in a ring, each joined with the next and the one after."""

    name = "circulant"
    parameters = ("switches", "shape")
    optional = ("shape",)

    def check(self, parameters):
        n = parameters["switches"]
        return [] if n >= 5 else [Problem("at least 5", str(n), key="switches")]

    def order(self, parameters):
        return int(parameters["switches"])

    def build(self, parameters):
        n = int(parameters["switches"])
        at = np.arange(n)
        edges = np.concatenate([np.column_stack((at, (at + step) % n)) for step in (1, 2)])
        return Topology(
            family=self.name,
            parameters={"switches": n},
            graph=Graph.from_edges(n, edges),
            kinds=("switch",),
            kind=np.zeros(n, np.uint8),
            coordinates=at[:, None].astype(np.int32),
            endpoints=np.ones(n, np.bool_),
            diameter=-(-(n // 2) // 2),
        )


class Nameless(Family):
    """It does not say how many switches it has."""

    name = "nameless"

    def build(self, parameters):
        raise AssertionError("it is refused before")


class OneMore(Balance):
    """The minimal port and one alternate."""

    name = "one-more"
    every_alternate = False

    def chosen(self, tables, topology, wiring):
        from dataclasses import replace

        classes = tables.classes
        weight = np.array(classes.weight)
        weight[..., 2:] = 0
        alternate = np.where(np.arange(classes.alternate.shape[2]) < 1, classes.alternate, 0)
        changed = replace(classes, alternate=alternate.astype(np.uint16), weight=weight)
        return replace(tables, classes=changed)
'''
SPEC = """name: ring
topology: {{family: circulant, switches: {n}}}
routing: {{balance: {balance}}}
targets: [ovs]
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "circulants.py").write_text(PACKAGE)
    families = {"circulant": "circulants:Circulant", "nameless": "circulants:Nameless"}
    install(folder, "circulants", families, "polarfab.families")
    install(folder, "one-more", {"one-more": "circulants:OneMore"}, "polarfab.balances")
    return folder


@pytest.fixture(scope="module")
def build(site, tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    (folder / "fabric.yaml").write_text(SPEC.format(n=9, balance="one-more"))
    for words in (
        ("compile", folder / "fabric.yaml", "-o", folder / "a"),
        ("verify", folder / "a"),
    ):
        code, _, err = polarfab(site, words=words)
        assert code == 0, err
    return folder / "a"


def test_the_tables_have_one_alternate(site, build):
    code, out, err = polarfab(site, words=("explain", build, "0", "4", "--json"))
    assert code == 0, err
    assert len(json.loads(out)["alternates"]) <= 1


def test_it_renders_and_what_is_written_is_read_back(site, build, tmp_path):
    words = ("render", build, "--target", "frr", "-o", tmp_path / "out")
    code, _, err = polarfab(site, words=words)
    assert code == 0, err
    code, _, err = polarfab(site, words=("verify", build, "--emitted", tmp_path / "out"))
    assert code == 0, err


def test_it_is_emulated_on_the_model(site, build):
    code, out, err = polarfab(site, words=("emulate", build, "--engine", "model", "--json"))
    assert code == 0, err
    assert json.loads(out)["passed"]


def test_its_mistakes_are_told_like_ours(site, tmp_path):
    (tmp_path / "fabric.yaml").write_text(SPEC.format(n=4, balance="one-mor"))
    code, _, err = polarfab(site, words=("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "a"))
    assert code == 2
    assert "topology.switches: required at least 5, given 4" in err
    assert "one-more, given one-mor; did you mean one-more?" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("family: circulant, swiches: 9", "given 9; did you mean switches?"),
        ("family: nameless", "given circulants:Nameless does not say order"),
    ],
)
def test_parameters_are_the_family_s_and_what_it_must_say(site, tmp_path, words, said):
    (tmp_path / "fabric.yaml").write_text(f"name: ring\ntopology: {{{words}}}\n")
    code, _, err = polarfab(site, words=("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "a"))
    assert (code, said in err) == (2, True), err


def test_parameters_on_the_command_line(site):
    code, out, err = polarfab(site, words=("export", "circulant", "switches=7", "shape=ring"))
    assert (code, len(out.splitlines())) == (0, 14), err


def test_without_the_package_both_are_unknown(tmp_path):
    (tmp_path / "fabric.yaml").write_text(SPEC.format(n=9, balance="one-more"))
    code, _, err = polarfab(words=("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "a"))
    assert code == 2
    assert "given circulant" in err
    assert "given one-more" in err
