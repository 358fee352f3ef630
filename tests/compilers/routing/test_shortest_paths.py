"""`balance: ecmp`: all shortest paths alike, from the tables to the emitted text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from compilers.evaluation.saturation import throughput
from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.proof.lossless.channels import find_channels
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from inventory.problems import InputError
from tests.compilers.readers.emitted import IDENTITY, check, write

PN = {"family": "pn", "q": 2}
STAR = {"family": "polarstar", "q": 2, "supernode": "inductive-quad", "degree": 3}
FABRICS = [
    PN,
    {"family": "oft", "q": 2},
    {"family": "jellyfish", "nodes": 16, "degree": 4, "seed": 2},
    {"family": "hyperx", "sides": "3x3"},
]


def compiled(topology: dict[str, int | str], **routing: str) -> Build:
    words = {"balance": "ecmp", **routing}
    return compile_fabric(load_fabric({"name": "lab", "topology": topology, "routing": words}))


def name(topology: dict[str, int | str]) -> str:
    return str(topology["family"])


@pytest.mark.parametrize("topology", FABRICS, ids=name)
def test_first_links_are_those_of_all_shortest_paths(topology: dict[str, int | str]) -> None:
    build = compiled(topology)
    graph = nx.Graph(build.topology.graph.edges().tolist())
    ends = np.flatnonzero(build.topology.endpoints).tolist()
    for s in ends[:: max(1, len(ends) // 5)]:
        for d in ends:
            if s == d:
                continue
            found = explain(build, s, d)
            alternates = [found.minimal, *found.alternates]
            wanted = list(nx.all_shortest_paths(graph, s, d))
            assert sorted(hop[1] for hop in alternates) == sorted({path[1] for path in wanted})
            assert all(list(hop) in wanted for hop in alternates)
    weight, alternate = build.tables.classes.weight, build.tables.classes.alternate
    assert (np.asarray(weight)[..., 1:] == (np.asarray(alternate) > 0)).all()


@pytest.mark.parametrize("topology", [*FABRICS[:-1], STAR], ids=name)
def test_nothing_is_lost_under_any_single_failure(topology: dict[str, int | str]) -> None:
    build = compiled(topology, protect="node")
    walked, certified = (verify(build, ProofOptions(method=m)) for m in ("walk", "local"))
    assert walked.passed
    assert certified.passed
    assert [f.lost_pairs for f in walked.failures] == [f.cut_off for f in walked.failures]
    assert find_channels(build).is_deadlock_free


@pytest.mark.parametrize("q", [2, 3])
def test_every_link_of_a_projective_network_carries_the_mean(q: int) -> None:
    """Uniform traffic over all q + 1 paths in equal shares: the links are alike."""
    build = compiled({"family": "pn", "q": q})
    found = throughput(build, "uniform", q + 2)
    n = q * q + q + 1
    links = (q + 1) + 2 * q * (q + 1) + 3 * q * q
    assert found.as_emitted is not None
    assert found.as_emitted.peak == pytest.approx(found.as_emitted.mean)
    assert found.as_emitted.mean == pytest.approx(links / (q + 1) / (2 * n - 1))
    assert found.minimal.peak > 1.08 * found.as_emitted.peak
    far = [k for k in range(2 * n) if len(explain(build, 0, k).alternates) == q] if q < 4 else []
    assert len(far) == (q * q if q < 4 else 0)


@pytest.mark.parametrize("target", ["ovs", "linux", "eos", "junos"])
def test_targets_carry_them(target: str, tmp_path: Path) -> None:
    build = replace(compiled(PN), identity=IDENTITY)
    write(target, build, tmp_path)
    assert not check(target, build, tmp_path).differences


def test_a_target_that_cannot_tell_who_enters_refuses(tmp_path: Path) -> None:
    build = replace(compiled(PN), identity=IDENTITY)
    with pytest.raises(InputError, match="minimal, as target srlinux cannot do"):
        write("srlinux", build, tmp_path)


@pytest.mark.parametrize(
    ("topology", "routing", "said"),
    [
        (
            {"family": "polarfly", "q": 3},
            {},
            "in polarfly, which has one; write minimal, or spread",
        ),
        ({**STAR, "q": 31, "degree": 4}, {}, "another balance for more than 8,192 switches"),
        ({"family": "pn", "q": 64}, {}, "more than 8,192 switches, given ecmp and none"),
        (PN, {"disjoint": "edge"}, "disjoint: required auto or none with `balance: ecmp`"),
        (PN, {"adjacent": "bounce"}, "adjacent: required minimal with `balance: ecmp`"),
        (PN, {"minimal_share": "1/2"}, "required equal-cost with `balance: ecmp`, given 1/2"),
    ],
)
def test_messages(topology: dict[str, int | str], routing: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        compiled(topology, **routing)
