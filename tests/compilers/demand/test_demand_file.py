"""Demands as files: forms that mean the same flows, and what is said of mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.demand.demand_file import host_traffic, read_demand
from inventory.problems import InputError
from inventory.yamlfile import TextFile
from tests.compilers.routed import routed

BUILD = routed(q=2)
NAMES = BUILD.wiring.names
HOSTS = BUILD.wiring.host_names


def flows(text: str) -> set[tuple[int, int, float]]:
    found = read_demand(TextFile("d.csv", text, ""), BUILD.wiring).traffic()
    parts = (found.source.tolist(), found.destination.tolist(), found.amount.tolist())
    return set(zip(*parts, strict=True))


def matrix(cells: dict[tuple[int, int], str], order: int = 7) -> list[list[str]]:
    return [[cells.get((s, d), "0") for d in range(order)] for s in range(order)]


WHOLE = matrix({(0, 3): "2.5", (6, 1): "4"})


@pytest.mark.parametrize(
    "text",
    [
        "0,3,2.5\n6,1,4\n",
        f"source,destination,rate\n\n# a comment\n0, 3, 1.5\n{HOSTS[0]},3,1\n6,1,4e0\n2,5,0\n4,4,9",
        f"{NAMES[0]},{NAMES[3]},2.5\n{HOSTS[6]},{NAMES[1]},4\n",
        "0 3 2.5\n6 1 4\n",
        "source;destination;rate\n0;3;2.5\n6;1;4\n",
        "\n".join(",".join(row) for row in WHOLE),
        "\n".join(" ".join(row) for row in WHOLE),
        f"rate,{NAMES[3]},1,0\n0,2.5,0,0\n3,0,0,0\n6,0,4,0\n",
    ],
)
def test_forms(text: str) -> None:
    assert flows(text) == {(0, 3, 2.5), (6, 1, 4.0)}


def test_a_matrix_of_two_names_is_no_list_of_flows() -> None:
    assert flows(f",{NAMES[2]},{NAMES[5]}\n2,0,7\n5,3,0\n") == {(2, 5, 7.0), (5, 2, 3.0)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0,1,10G\n1,2,5\n", "d.csv:1: demand: required a rate of 0 or more, given 10G"),
        ("0,99,1", "d.csv:1: demand: required a switch, by name or vertex, or a host, given 99"),
        ("0,1,x\n1,2,-1\n1,3,nan", "d.csv:3: demand: required a rate of 0 or more, given nan"),
        ("", "an empty file"),
        ("0,0,1\n# end\n1,2,0\n", "d.csv:3: demand: required a rate above 0 between two switches"),
        ("\n".join(",".join(row) for row in WHOLE)[:-2], "d.csv:7: demand: required 7 values"),
    ],
)
def test_mistakes(text: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        flows(text)
    assert told in str(error.value)


def test_each_line_that_names_a_switch_without_hosts_is_named() -> None:
    build = routed("oft", q=2, spread=True)
    (spine, *_), (leaf, other, *_) = (
        np.flatnonzero(build.topology.endpoints == end).tolist() for end in (0, 1)
    )
    text = f"{leaf},{other},1\n\n{leaf},{spine},2\n{spine},{other},3\n"
    with pytest.raises(InputError) as error:
        host_traffic(build, TextFile("d.csv", text, ""))
    name = build.wiring.names[spine]
    assert str(error.value).splitlines() == [
        f"d.csv:{line}: demand: required rates between switches with hosts, "
        f"given {name}, which has none"
        for line in (3, 4)
    ]
