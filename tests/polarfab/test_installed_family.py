"""A family and a balance of another package: compiled, proved, rendered, emulated."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys

import pytest
import yaml

from tests.polarfab.makers import install, polarfab

PACKAGE = '''
from dataclasses import replace

import numpy as np
from polarfab import Balance, Family, Forwarding, Topology
from compilers.topology.adjacency import Graph
from inventory.problems import InputError, Problem


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

    def chosen(self, tables, forwarding, topology, wiring):
        classes = tables.classes
        weight = np.array(classes.weight)
        weight[..., 2:] = 0
        alternate = np.where(np.arange(classes.alternate.shape[2]) < 1, classes.alternate, 0)
        changed = replace(classes, alternate=alternate.astype(np.uint16), weight=weight)
        return replace(tables, classes=changed), replace(forwarding, alternates="some")


class RandomWeights(Balance):
    """Weights by chance, some of them 0."""

    name = "random-weights"

    def chosen(self, tables, forwarding, topology, wiring):
        drawn = np.random.default_rng(7).integers(0, 9, tables.classes.weight.shape)
        drawn[..., 0] += 1
        classes = tables.classes.weighted(drawn)
        return replace(tables, classes=classes), replace(forwarding, weights="any")


class Untrue(RandomWeights):
    """The same, which it does not say."""

    name = "untrue"

    def chosen(self, tables, forwarding, topology, wiring):
        return super().chosen(tables, forwarding, topology, wiring)[0], forwarding


class Marked(Balance):
    """Marked packets, by another name than ours."""

    name = "marked"
    forwarding = Forwarding(alternates="all", marks=True)


class Silent(Balance):
    """Tables alone."""

    name = "silent"

    def chosen(self, tables, forwarding, topology, wiring):
        return tables


class Floating(Balance):
    """Weights that are no whole numbers."""

    name = "floating"

    def chosen(self, tables, forwarding, topology, wiring):
        classes = replace(tables.classes, weight=tables.classes.weight / 2)
        return replace(tables, classes=classes), replace(forwarding, weights="any")


class Failing(Balance):
    """It asks for weights of ports that no class has."""

    name = "failing"

    def chosen(self, tables, forwarding, topology, wiring):
        return tables.classes.weight[:, :, 99], forwarding


class Careful(Balance):
    """It refuses the fabric itself."""

    name = "careful"

    def chosen(self, tables, forwarding, topology, wiring):
        raise InputError.of("a larger fabric", "a small one", key="topology.switches")
'''
BALANCES = {
    "one-more": "OneMore",
    "random-weights": "RandomWeights",
    "untrue": "Untrue",
    "marked": "Marked",
    "silent": "Silent",
    "floating": "Floating",
    "failing": "Failing",
    "careful": "Careful",
}
SPEC = """name: ring
topology: {{family: circulant, switches: {n}}}
routing: {{balance: {balance}}}
system: ovs
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "circulants.py").write_text(PACKAGE)
    families = {"circulant": "circulants:Circulant", "nameless": "circulants:Nameless"}
    install(folder, "circulants", families, "polarfab.families")
    balances = {name: f"circulants:{kind}" for name, kind in BALANCES.items()}
    install(folder, "balances", balances, "polarfab.balances")
    return folder


@pytest.fixture(scope="module")
def build(site, tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    (folder / "fabric.yaml").write_text(SPEC.format(n=9, balance="one-more"))
    code, _, err = polarfab(site, words=("compile", folder / "fabric.yaml", "-o", folder / "a"))
    assert code == 0, err
    return folder / "a"


def test_init_asks_for_the_parameters_of_the_family(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "circulants.py").write_text(PACKAGE)
    install(site, "circulants", {"circulant": "circulants:Circulant"}, "polarfab.families")
    ours, theirs = pty.openpty()
    env = os.environ | {"NO_COLOR": "1", "PYTHONPATH": str(site)}
    words = [sys.executable, "-m", "polarfab", "init", "lab"]
    with subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=env
    ) as run:
        os.close(theirs)
        os.write(ours, b"circulant\n9\n1\n")
        seen = b""
        while part := _shown(ours):
            seen += part
    os.close(ours)
    assert run.returncode == 0, seen
    spec = yaml.safe_load((tmp_path / "lab" / "fabric.yaml").read_text())
    assert spec["topology"] == {"family": "circulant", "switches": 9}


def _shown(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


@pytest.fixture(scope="module", params=[("random-weights", 2), ("marked", 3)], ids=str)
def other(request, site, tmp_path_factory):
    """A build of PolarFly by another balance of the package."""
    balance, q = request.param
    folder = tmp_path_factory.mktemp(balance)
    topology = f"name: lab\ntopology: {{family: polarfly, q: {q}}}\n"
    routing = f"routing: {{balance: {balance}, protect: link}}\nsystem: ovs\n"
    (folder / "fabric.yaml").write_text(topology + routing)
    words = "compile", folder / "fabric.yaml", "-o", folder / "a"
    code, _, err = polarfab(site, words=words)
    assert code == 0, err
    return folder / "a"


def answers(sites, build, folder, *, of_family=True):
    """What verbs say of a build, and what they write; `verify` and `render` build the graph."""
    calls = {
        "explain": ("explain", build, "0", "4", "--json"),
        "throughput": ("throughput", build, "--pattern", "tornado", "--json"),
    }
    if of_family:
        calls |= {
            "verify": ("verify", build, "--json"),
            "render": ("render", build, "--target", "ovs", "-o", folder),
            "emitted": ("verify", build, "--emitted", folder, "--json"),
        }
    said = {name: polarfab(*sites, words=words) for name, words in calls.items()}
    assert {name: code for name, (code, _, _) in said.items()} == dict.fromkeys(said, 0), said
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return said, {path.relative_to(folder): path.read_bytes() for path in files}


def test_answers_do_not_depend_on_the_package_of_the_balance(site, other, tmp_path):
    """Without it, a build was explained as one of another balance."""
    folder = tmp_path / "out"
    said, files = answers((site,), other, folder)
    assert len(files) > 13
    shutil.rmtree(folder)
    assert answers((), other, folder) == (said, files)


def test_answers_do_not_depend_on_the_package_of_the_family(site, build, tmp_path):
    with_package = answers((site,), build, tmp_path, of_family=False)
    assert answers((), build, tmp_path, of_family=False) == with_package


def test_without_its_family_a_build_is_not_proved_and_keeps_its_mark(build):
    """It was called a damaged build, and its mark was removed."""
    mark = (build / "verified.json").read_bytes()
    code, _, err = polarfab(words=("verify", build))
    assert (code, "topology.family: required family circulant" in err) == (2, True), err
    assert (build / "verified.json").read_bytes() == mark


def test_what_a_balance_says_is_proved(site, tmp_path):
    (tmp_path / "fabric.yaml").write_text(SPEC.format(n=9, balance="untrue"))
    code, _, err = polarfab(site, words=("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "a"))
    assert code == 1
    assert "required 1 to 1, the minimal port to each alternate, given" in err


@pytest.mark.parametrize(
    ("balance", "said"),
    [
        (
            "silent",
            "fabric.yaml:3: routing.balance: required tables and their Forwarding from `chosen` of "
            "silent, given Tables (package balances)",
        ),
        ("floating", "required weight as uint16[9, 9, 4] from `chosen` of floating, given float64"),
        (
            "failing",
            "fabric.yaml:3: routing.balance: required tables and their Forwarding from `chosen` of "
            "failing, given IndexError: index 99 is out of bounds for axis 2 with size 4 (package "
            "balances); correct the package that registers it",
        ),
        ("careful", "fabric.yaml:2: topology.switches: required a larger fabric"),
    ],
)
def test_what_is_no_result_of_a_balance_is_refused(site, tmp_path, balance, said):
    """An exception in `chosen` was called a bug of polarfab."""
    (tmp_path / "fabric.yaml").write_text(SPEC.format(n=9, balance=balance))
    code, _, err = polarfab(site, words=("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "a"))
    assert (code, said in err) == (2, True), err


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
    assert "given one-mor; did you mean one-more?" in err


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
