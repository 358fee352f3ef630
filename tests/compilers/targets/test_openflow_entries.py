"""Flows and groups that a switch needs, and that it would need with groups per destination."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from ipaddress import IPv6Network

import pytest

from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.entry_counts import entries
from compilers.targets.openflow.flow_tables import generation_of, marker_cookie
from compilers.targets.openflow.pipeline import Pipeline
from tests.compilers.routed import routed

BUILDS = {
    "minimal": routed(q=3),
    "repaired": routed(q=3, spread=True, protect="link", hosts=2),
    "aggregates": routed("polarstar", supernode="complete", q=2, degree=2),
}


def fabric(name: str) -> Build:
    build = BUILDS[name]
    addressing = replace(build.addressing, ipv6=IPv6Network("fd00::/48"))
    return replace(build, addressing=addressing, identity="0123456789abcdef")


@pytest.mark.parametrize("name", BUILDS)
def test_as_many_as_the_encoder_makes(name: str) -> None:
    encoder = Encoder(fabric(name))
    made = [encoder.program(v) for v in range(fabric(name).tables.switches)]
    counts = [sum(map(len, (*program.flows, *program.groups))) for program in made]
    assert entries(fabric(name)).emitted == max(counts)


@pytest.mark.parametrize("name", BUILDS)
def test_without_classes_each_destination_has_its_own(name: str) -> None:
    build = fabric(name)
    pipeline = Pipeline(build)

    def naive(vertex: int) -> int:
        groups, rows = Counter[int](), Counter[int]()
        for made in pipeline.groups(vertex):
            groups.update(made.egress.tolist())
            rows.update(made.egress[made.has_row].tolist())
        prefix, egress = (column.tolist() for column in pipeline.routes(vertex))
        routes = 2 * len(prefix)
        total = pipeline.row_count(vertex) - routes - rows.total()
        for number, k in zip(prefix, egress, strict=True):
            behind = 1 if number < build.tables.switches else build.addressing.hierarchy
            total += behind * (groups[k] + 2 * rows[k])
        return total

    assert entries(build).naive == max(map(naive, range(build.tables.switches)))


def test_a_marker_tells_its_generation() -> None:
    cookies = [marker_cookie(fabric("minimal"), generation) for generation in (0, 1)]
    assert [generation_of(cookie) for cookie in (*cookies, None)] == [0, 1, 0]
