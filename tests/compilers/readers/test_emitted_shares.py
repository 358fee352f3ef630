"""The guarantee by what was emitted: shares are those that were read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from compilers.evaluation.guarantee import guarantee
from compilers.readers.emitted_shares import with_emitted_shares
from compilers.tables.build import Build
from compilers.targets.openflow.emitted_messages import check_messages
from compilers.targets.openflow.profiles import PROFILES
from inventory.problems import InputError
from polarfab.commands.builds.verify import command
from polarfab.fabric import Fabric
from tests.compilers.evaluation.test_guarantee import compiled, explained, peak
from tests.compilers.readers.emitted import IDENTITY


def identified(fabric: str, policy: str = "balance: minimal") -> Build:
    return replace(compiled(fabric, policy), identity=IDENTITY)


FEW = next(profile for profile in PROFILES.values() if profile.buckets == 8)


def test_switches_with_few_buckets_guarantee_what_they_share() -> None:
    """Of five paths a class they have three: the minimal one and two alternates."""
    build = identified("polarfly q=4", "balance: compact-valiant, disjoint: none")
    profiles = [replace(FEW, buckets=3)] * len(build.wiring.names)
    report = check_messages(build, profiles=profiles)
    assert report.passed
    read = with_emitted_shares(build, report)
    several = np.count_nonzero(read.tables.classes.weight, axis=2)
    assert several.max() == 3 < np.count_nonzero(build.tables.classes.weight, axis=2).max()
    found = guarantee(read, 2).share
    assert found == pytest.approx(1 / (2 * peak([*explained(read).values()])))
    assert found != pytest.approx(guarantee(build, 2).share)


def test_all_shares_are_those_of_the_tables() -> None:
    build = identified("polarfly q=3", "balance: spread, minimal_share: .3")
    report = check_messages(build)
    assert report.passed
    assert with_emitted_shares(build, report) is build


def test_a_target_without_shares_is_refused() -> None:
    build = identified("polarfly q=3")
    report = replace(check_messages(build), shares=None)
    with pytest.raises(InputError, match="guarantee: required files of a target whose shares"):
        with_emitted_shares(build, report)


def test_the_verb_says_it_of_files(tmp_path: Path) -> None:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 2}
    spec["routing"] = {"balance": "spread", "minimal_share": ".3"}
    fabric = Fabric.from_spec(spec).compile().save(tmp_path / "build")
    fabric.render("linux", tmp_path / "linux", check=False)
    words = [tmp_path / "build", "--quick", "--emitted", tmp_path / "linux", "--guarantee"]
    result = CliRunner().invoke(command, [*map(str, words), "--json"], catch_exceptions=False)
    share = json.loads(result.stdout)["guarantee"]["share"]
    assert share == pytest.approx(guarantee(fabric.build).share)
    shown = CliRunner().invoke(command, [*map(str, words)], catch_exceptions=False)
    assert f"{share:.2%}" in shown.stdout
    alone = CliRunner().invoke(command, [str(tmp_path / "build"), "--guarantee"])
    assert alone.exit_code == 2
