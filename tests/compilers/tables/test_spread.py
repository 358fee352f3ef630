"""Alternates as sets of links: what is counted and shared."""

from pathlib import Path

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables import computed_array
from compilers.tables.folders.build_folder import load, save
from compilers.tables.packed_alternates import AlternateLinks, count_set_bits


@pytest.mark.parametrize("width", [0, 1, 7, 8, 9, 39])
def test_counts_are_those_of_bits(width: int) -> None:
    links = np.random.default_rng(width).integers(0, 256, (50, 3, width), dtype=np.uint8)
    links[0], links[1] = 0, 255
    expected = np.unpackbits(links, axis=2).sum(axis=2)
    np.testing.assert_array_equal(count_set_bits(links), expected)
    np.testing.assert_array_equal(count_set_bits(links[::2, 1]), expected[::2, 1])
    spread = AlternateLinks(
        links, np.zeros((50, 8 * width), np.uint16), np.zeros((50, 3, 2), np.uint16)
    )
    assert spread.most_alternates == max(1, 8 * width)


def test_ports_and_weights_of_a_build_share_their_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computed_array, "STORED_CELLS", 0)
    topology = {"family": "polarfly", "q": 4}
    spec = {"name": "lab", "topology": topology, "routing": {"balance": "compact-valiant"}}
    build = compile_fabric(load_fabric(spec))
    save(build, tmp_path / "build")
    classes = load(tmp_path / "build").tables.classes
    assert classes.alternate.packed is classes.weight.packed
    np.testing.assert_array_equal(classes.alternate, build.tables.classes.alternate)
    np.testing.assert_array_equal(classes.weight, build.tables.classes.weight)
