"""Constructed classes of PolarStar against walks, and which fabrics have them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.families.polarstar import LARGEST_DEGREE
from compilers.pipeline import compile_fabric
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.spec import policy
from compilers.spec.fabric_file import load_fabric
from compilers.spec.policy import LARGEST_SEARCH
from compilers.tables import computed_array
from compilers.tables.folders.build_folder import load, save
from compilers.tables.packed_alternates import AlternatePorts
from compilers.tables.star_rows import StarEgress
from compilers.targets.target_lookup import target
from compilers.topology.families import FAMILIES
from inventory.problems import InputError
from tests.compilers.routed import by_class

FABRICS = [
    (3, "inductive-quad", 3, True),  # all neighbours of some members are joined to each other
    (3, "inductive-quad", 4, True),  # some members have no common neighbour
    (4, "paley", 2, False),
    (3, "complete", 2, True),
]


@pytest.mark.parametrize("fabric", FABRICS)
def test_no_failure_of_a_link_or_switch_loses_a_pair(
    fabric: tuple[int, str, int, bool],
) -> None:
    """Nothing is lost, and classes have all the alternates that walks find (`promise`)."""
    build = by_class(*fabric)
    report = verify(build, ProofOptions(failures=("link", "node"), method="walk"))
    assert report.passed, report.unsound.texts()
    assert [case.lost_pairs for case in report.failures] == [0, 0]
    assert build.tables.classes.port.shape[1] == 3 * build.wiring.port.shape[1]


def test_a_fabric_too_large_for_a_search_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "LARGEST_SEARCH", 100)
    monkeypatch.setattr(computed_array, "STORED_CELLS", 0)
    file = tmp_path / "fabric.yaml"
    text = "name: lab\ntopology: {family: polarstar, q: 3, supernode: inductive-quad, degree: 3}\n"
    file.write_text(text + "routing: {balance: compact-valiant, protect: node}\n")
    build = compile_fabric(load_fabric(file))
    assert isinstance(build.tables.routes.egress, StarEgress)
    assert isinstance(build.tables.classes.alternate, AlternatePorts)
    stored = by_class(3, "inductive-quad", 3).tables
    for word in ("port", "alternate", "weight", "protection", "bounce"):
        ours, theirs = (getattr(tables.classes, word) for tables in (build.tables, stored))
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(build.tables.routes.egress, stored.routes.egress)
    save(build, tmp_path / "build")
    read = load(tmp_path / "build")
    np.testing.assert_array_equal(read.tables.routes.egress, stored.routes.egress)
    report = verify(read, ProofOptions(method="local"))
    assert report.passed
    assert report.local
    assert report.local.proved == ("delivery", "alternates", "link", "node")


def test_alternates_of_large_ones_share_links(tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    text = "name: lab\ntopology: {family: polarstar, q: 23, supernode: inductive-quad, degree: 8}\n"
    file.write_text(text + "routing: {balance: compact-valiant, disjoint: edge}\n")
    with pytest.raises(InputError, match="auto or none for a PolarStar of more than 8,192"):
        load_fabric(file)


@pytest.mark.parametrize("fabric", [(2, "paley", 4), (2, "cayley", 2), (2, "inductive-quad", 3)])
def test_with_q_2_more_links_repair_than_are_constructed(fabric: tuple[int, str, int]) -> None:
    """So little lies beyond; nothing is lost, but only a search finds all. All are searched."""
    build = by_class(*fabric)
    report = verify(build, ProofOptions(failures=("link", "node"), method="walk"))
    assert [case.lost_pairs for case in report.failures] == [0, 0]
    assert "protection" in report.unsound.texts()[0]
    largest = {"q": 2, "supernode": "inductive-quad", "degree": LARGEST_DEGREE}
    assert FAMILIES["polarstar"].order(largest) <= LARGEST_SEARCH


@pytest.mark.parametrize("name", ["ovs", "linux"])
def test_emitted_files_do_what_classes_say(name: str, tmp_path: Path) -> None:
    build = replace(by_class(3, "complete", 1), identity="0123456789abcdef")
    target(name).render(build, tmp_path / "out")
    assert target(name).check_emitted(build, tmp_path / "out", None).passed
