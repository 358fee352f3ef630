"""`spread` with a `minimal_share`: systems with weights print it, others refuse it in words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from inventory.problems import InputError
from tests.compilers.evaluation.test_guarantee import compiled
from tests.compilers.readers.emitted import IDENTITY, change, check, write

POLICY = "balance: spread, minimal_share: .3, protect: node"
FRR = {"version": "10.7"}


@pytest.mark.parametrize(
    ("name", "options", "file", "weight"),
    [
        ("ovs", {}, "groups.txt", r"(bucket=weight:)(\d+)"),
        ("linux", {}, "routes.batch", r"( group \d+,)(\d+)/"),
        ("frr", FRR, "frr.conf", r"( weight )([2-9]\d*)"),
    ],
)
def test_weights_are_read_back(
    name: str, options: dict[str, str], file: str, weight: str, tmp_path: Path
) -> None:
    """3 of 10 parts, and the others 7 of 30 each; a quadric has 3 links."""
    build = replace(compiled("polarfly q=3", POLICY), identity=IDENTITY)
    assert {tuple(row) for row in build.tables.classes.weight[:, 0].tolist()} == {
        (9, 7, 7, 7),
        (6, 7, 7, 0),
    }
    write(name, build, tmp_path, options)
    report = check(name, build, tmp_path, options)
    assert not report.differences
    assert report.delivered == report.pairs > 0
    path = tmp_path / "1" / file
    found = re.search(weight, path.read_text())
    assert found
    change(path, found[0], found[0].replace(found[2], str(int(found[2]) + 1)))
    assert check(name, build, tmp_path, options).differences


@pytest.mark.parametrize(
    ("name", "options"), [("frr", {"version": "8.4"}), ("eos", {}), ("sonic", {})]
)
def test_systems_without_weights_refuse_it(
    name: str, options: dict[str, str], tmp_path: Path
) -> None:
    build = compiled("polarfly q=3", POLICY.replace(", protect: node", ""))
    with pytest.raises(InputError, match=r"routing\.minimal_share: required equal-cost"):
        write(name, build, tmp_path, options)
