"""Times of motifs: they are kept as points are, and settings have to agree on a statement."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from extensions.papers.exhibit import PaperClaim
from extensions.papers.motif_times import motif_time, simulated_time
from extensions.papers.paper_fabric import PaperFabric
from extensions.papers.polarstar.polarstar_motifs import (
    BY_UGAL,
    GRIDS,
    NEAR_TIMES,
    SETTINGS,
    MotifKey,
    in_all_settings,
    time_key,
)
from extensions.papers.polarstar.polarstar_simulation import networks
from extensions.papers.result_cache import (
    TimeKey,
    cached_results,
    caching_in,
    only_from,
    points_digest,
    recompute_sample,
)
from extensions.simulation.collective_completion import CompletionTime
from inventory.problems import InputError

FABRIC = PaperFabric({"family": "polarfly", "q": 3}, 2, "UGAL").text()
TREE = TimeKey(FABRIC, "tree-allreduce", 1024, 0, 0, '{"buffer": 64}')


def timed(folder: Path, what: TimeKey = TREE) -> CompletionTime:
    with caching_in(folder):
        return motif_time(what, quick=False)


def edited(file: Path, **cells: str) -> None:
    """Write other cells into the last line of a file."""
    head, *rows = csv.reader(file.read_text().splitlines())
    rows[-1] = [cells.get(name, cell) for name, cell in zip(head, rows[-1], strict=True)]
    with file.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([head, *rows])


def test_a_time_that_is_kept_is_not_simulated_again(tmp_path: Path) -> None:
    first, file = timed(tmp_path), tmp_path / "times.csv"
    assert first == simulated_time(TREE)
    assert file.read_text().startswith("fabric,collective,size,rows,seed,settings,code,hosts,")
    assert [kept.code for kept in cached_results(file)] == [points_digest()]
    edited(file, cycles="7", deadlock="[1, 2]")
    again = timed(tmp_path)
    assert (again.cycles, again.deadlock, again.size) == (7, (1, 2), 1024)
    edited(file, code="other")
    assert timed(tmp_path) == first
    assert len(file.read_text().splitlines()) == 3


def test_times_are_taken_from_a_file_alone(tmp_path: Path) -> None:
    first, file = timed(tmp_path), tmp_path / "times.csv"
    edited(file, code="other")
    with only_from(file):
        assert motif_time(TREE, quick=False) == first
        with pytest.raises(InputError, match=r"tree-allreduce, size 1024, seed 1 of \{"):
            motif_time(TREE._replace(seed=1), quick=False)
    for name, text in (("size", "0"), ("size", '"a"'), ("seed", "-1"), ("hosts", "")):
        edited(file, **{name: text})
        assert [*cached_results(file)] == []
        timed(tmp_path)
        file.write_text("\n".join(file.read_text().splitlines()[::2]) + "\n")


def test_times_are_checked(tmp_path: Path, polarfab) -> None:
    timed(tmp_path)
    file = tmp_path / "times.csv"
    words = ("reproduce", "--check", file, "--json")
    code, out, _ = polarfab(*words)
    (row,) = json.loads(out)
    assert (code, row["agrees"], row["kept"]) == (0, True, row["now"])
    assert (row["collective"], row["size"]) == ("tree-allreduce", 1024)
    edited(file, cycles="7")
    assert polarfab(*words)[0] == 1
    edited(file, cycles="null")
    assert polarfab(*words)[0] == 1
    edited(file, fabric="{")
    assert "error: required a time as `reproduce` writes it" in polarfab(*words)[2]
    edited(file, fabric=FABRIC)
    assert "cycles of points simulated again" in polarfab(*words[:-1])[1]


@pytest.mark.parametrize(
    ("kept", "now", "agrees"),
    [
        (("null", "null"), None, True),
        (("null", "null"), 100, False),
        (("100", "null"), 100, None),
        (("100", "100"), None, False),
        (("100", "100"), 100, True),
    ],
)
def test_a_collective_that_did_not_end_has_no_time(
    tmp_path: Path, kept: tuple[str, ...], now: int | None, agrees: bool | None
) -> None:
    """Its time was 0 cycles, of which a mean was made with those that ended."""
    first, file = timed(tmp_path), tmp_path / "times.csv"
    head, row = csv.reader(file.read_text().splitlines())
    rows = [
        [
            {"seed": f"{seed}", "code": "other", "cycles": cycles}.get(name, cell)
            for name, cell in zip(head, row, strict=True)
        ]
        for seed, cycles in enumerate(kept)
    ]
    with file.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([head, *rows])
    again = recompute_sample(file, 2, 0, lambda _: replace(first, cycles=now))
    assert [point.agrees for point in again] == [agrees] * 2


def claims(*ratios: float, relation: str = ">=", **more: float | str) -> list[PaperClaim]:
    """The claim that one time is at least, or as long as, another, once for each setting."""
    return [PaperClaim("slower", 1, ratio, relation, **more) for ratio in ratios]  # type: ignore[arg-type]


def test_all_settings_have_to_agree_on_an_order() -> None:
    less, more = 1 - 2 * NEAR_TIMES, 1 + 2 * NEAR_TIMES
    verdicts = {
        ratios: in_all_settings(claims(*ratios))
        for ratios in ((more, 2), (more, 1), (more, less), (less, less), (1, 1))
    }
    assert [claim.verdict for claim in verdicts.values()] == [
        "equal",
        "not computed",
        "not computed",
        "contradicts",
        "not computed",
    ]
    assert verdicts[more, less].why.startswith("By the setting 0.9 to 1.1 of the other.")
    assert verdicts[less, less].why.startswith("By the setting 0.9 to 0.9 of the other.")
    read = in_all_settings(claims(less, less, interpretation=BY_UGAL))
    assert (read.verdict, read.why.endswith(BY_UGAL)) == ("not computed", True)
    assert in_all_settings(claims(more, 2, interpretation=BY_UGAL)).verdict == "reading"


def test_all_settings_have_to_agree_that_times_are_alike() -> None:
    for ratios, verdict in {
        (1.0, 1.05): "reading",
        (1.0, 1.2): "not computed",
        (1.2, 0.8): "differs",
    }.items():
        alike = claims(*ratios, relation="=", reading_error=0.1, interpretation="So read.")
        claim = in_all_settings(alike)
        assert claim.verdict == verdict


def test_each_setting_differs_from_the_first_in_one_thing() -> None:
    """Grids are of all hosts."""
    star = MotifKey("MIN", "PS-IQ")
    first = time_key(star, "Sweep3D", SETTINGS[0], quick=False)
    for setting in SETTINGS[1:]:
        other = time_key(star, "Sweep3D", setting, quick=False)
        assert [a != b for a, b in zip(first, other, strict=True)].count(True) == 1
        assert ", " not in setting.difference()
    for name, rows in {**GRIDS[1], **GRIDS[2]}.items():
        network = networks(False)[name]
        assert int(network.topology().endpoints.sum()) * network.hosts % rows == 0
