"""Figure 11 of the PolarStar paper: how long Allreduce and Sweep3D take on four networks (§10)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import NamedTuple

from compilers.drawing.plots import Curve, Panel
from extensions.papers.exhibit import HOLDS, Evidence, PaperClaim
from extensions.papers.latency_curves import setup_of
from extensions.papers.motif_times import motif_time
from extensions.papers.polarstar.polarstar_simulation import (
    BY_OUR_TABLES,
    ROUTINGS,
    alike,
    fabric_of,
    fabrics_of,
    networks,
)
from extensions.papers.result_cache import TimeKey
from extensions.simulation.load_point import SimulationSettings

MOTIFS = {"Allreduce": "tree-allreduce", "Sweep3D": "sweep3d"}
"""The motifs, and how each is simulated."""
QUICK_MESSAGES = {"Allreduce": 16 << 10, "Sweep3D": 1 << 10}
"""Bytes of a motif's messages in small networks."""
MESSAGES = {"Allreduce": 64 << 10, "Sweep3D": 1 << 10}
"""Bytes of a motif's messages in whole networks; the paper's are not legible."""
MOTIF_NETWORKS = ("PS-IQ", "DF", "HX", "FT")
"""The networks of figure 11."""


USUAL_BUFFER = SimulationSettings().buffer
GRIDS: tuple[Mapping[str, int], ...] = (
    {},
    {"PS-IQ": 35, "DF": 36, "HX": 36, "FT": 36},
    {"PS-IQ": 28, "DF": 24, "HX": 24, "FT": 24},
)
"""Rows of the grids of Sweep3D: of the squarest ones, of those of half as many rows, and of some of
about a third. The squarest have 70 (PS-IQ) or 72."""


class MotifRun(NamedTuple):
    """A setting in which all motifs are simulated."""

    scale: float
    """The size of messages, in parts of `MESSAGES`."""
    buffer: int = USUAL_BUFFER
    """The flits that the buffers of a port hold."""
    grid: int = 0
    """Which of `GRIDS` Sweep3D has."""

    def words(self) -> str:
        """What is not as in `MotifRun(1)`."""
        rows = sorted({*GRIDS[self.grid].values()})
        words = {
            f"messages {self.scale:g} times as large": self.scale != 1,
            f"{self.buffer:,} flits a port": self.buffer != USUAL_BUFFER,
            f"grids of {' or '.join(map(str, rows))} rows for Sweep3D": self.grid != 0,
        }
        return ", ".join(word for word, differs in words.items() if differs)


RUNS = (
    MotifRun(1),
    MotifRun(1 / 4),
    MotifRun(1, buffer=1024),
    MotifRun(1, grid=1),
    MotifRun(1, grid=2),
)
"""The settings of whole networks. The values of the first one are printed."""
NEAR_TIMES = 0.05
"""Times as near as this have no order: so far are they from SimGrid's (the evidence of `simulate`).
"""
SAME_TIMES = "In some settings they are as near as times are to those of SimGrid, 5 %."
UNLIKE = "So it depends on the setting, and the paper's numbers are not legible."
OTHER_SIMULATOR = "The paper's simulator is SST, with other switches and with network cards."
BY_UGAL = "HyperX takes UGAL over all shortest paths, where the paper's has DOAL."


class MotifKey(NamedTuple):
    """A network that is simulated under a motif."""

    rule: str
    """The routing, of `ROUTINGS`."""
    network: str
    """The short name of the network."""


Cycles = Mapping[str, Mapping[MotifKey, float]]
"""The cycles by motif, and by routing and network."""


def motifs(quick: bool) -> Evidence:
    """Figure 11: how long Allreduce and Sweep3D take, on four networks."""
    compared = {name: networks(quick)[name] for name in MOTIF_NETWORKS}
    runs = RUNS[:1] if quick else RUNS
    cycles = _cycles_of(runs, quick)
    claims = [_motif_claims(one["Allreduce"], one["Sweep3D"]) for one in cycles]
    panels = tuple(
        Panel(motif, "", "cycles", _bars(cycles[0][motif]), steps=True) for motif in MOTIFS
    )
    judged = claims[0] if quick else map(in_all_settings, zip(*claims, strict=True))
    lines = setup_of(fabrics_of(compared), quick)[2:]
    setup = *_setup(quick), *_speedups(cycles[0]["Allreduce"], quick), *lines
    return Evidence((*judged,), panels=panels, setup=setup, quick=quick)


def _setup(quick: bool) -> tuple[str, ...]:
    """Lines that say how motifs were simulated."""
    sizes = QUICK_MESSAGES if quick else MESSAGES
    lines = (
        "A cycle is a flit of 64 bytes; 4 virtual channels, any free one is taken;"
        f" {USUAL_BUFFER} flits a port; packets of 4 flits, which move as one; links of one cycle;"
        " a motif once, with seed 0, over all hosts of a network that is empty.",
        *(f"{motif}: {MOTIFS[motif]}, {sizes[motif]:,} bytes." for motif in MOTIFS),
    )
    if quick:
        return lines
    others = "; ".join(run.words() for run in RUNS[1:])
    return (
        *lines,
        f"Also with {others}. A statement is judged if these settings agree on it.",
        f"{OTHER_SIMULATOR} The paper's text has lost its numbers of bytes, buffers, latencies"
        " and repetitions.",
    )


def _speedups(allreduce: Mapping[MotifKey, float], quick: bool) -> tuple[str, ...]:
    """A line with the two speedups that the text of the paper has lost; () of small networks."""
    if quick:
        return ()
    minimal, adaptive = (
        allreduce[MotifKey(rule, "DF")] / allreduce[MotifKey(rule, "PS-IQ")] for rule in ROUTINGS
    )
    speedups = f"{minimal:.3g} (MIN) and {adaptive:.3g} (UGAL)"
    return (f"Nor does it have the speedups of PS-IQ over DF with Allreduce: here {speedups}.",)


def _cycles_of(runs: Sequence[MotifRun], quick: bool) -> list[Cycles]:
    """The cycles in each setting. A network is compiled once for all of them."""
    cycles: list[dict[str, dict[MotifKey, float]]] = [{motif: {} for motif in MOTIFS} for _ in runs]
    for key in (MotifKey(rule, name) for rule in ROUTINGS for name in MOTIF_NETWORKS):
        for run, by_motif in zip(runs, cycles, strict=True):
            for motif, by_key in by_motif.items():
                time = motif_time(time_of(key, motif, run, quick), quick).cycles
                by_key[key] = inf if time is None else float(time)
    return [*cycles]


def time_of(key: MotifKey, motif: str, run: MotifRun, quick: bool) -> TimeKey:
    """What is simulated of a motif on a network."""
    fabric = fabric_of(key.network, networks(quick)[key.network], key.rule)
    size = int((QUICK_MESSAGES if quick else MESSAGES)[motif] * run.scale)
    rows = GRIDS[run.grid].get(key.network, 0) if motif == "Sweep3D" else 0
    fields = {} if run.buffer == USUAL_BUFFER else {"buffer": run.buffer}
    return TimeKey(fabric.text(), MOTIFS[motif], size, rows, 0, json.dumps(fields))


def _motif_claims(
    allreduce: Mapping[MotifKey, float], sweep: Mapping[MotifKey, float]
) -> tuple[PaperClaim, ...]:
    """The paper's words on figure 11, from the cycles of both motifs."""
    reduce = {(key.rule, key.network): cycles for key, cycles in allreduce.items()}
    sweep3d = {(key.rule, key.network): cycles for key, cycles in sweep.items()}
    star = reduce["UGAL", "PS-IQ"]
    others = [cycles for key, cycles in allreduce.items() if key.network != "FT"]
    by_tables = (
        _slower(
            "Allreduce is fastest on FT: MIN, beside all others", reduce["MIN", "FT"], min(others)
        ),
        *(
            _of_hyperx(
                name,
                _slower(
                    f"Allreduce, {name}: MIN is slower than UGAL",
                    reduce["UGAL", name],
                    reduce["MIN", name],
                ),
            )
            for name in ("PS-IQ", "DF", "HX")
        ),
        alike("Allreduce, UGAL: PS-IQ is comparable to FT", reduce["UGAL", "FT"], star),
        _of_hyperx(
            "HX", _slower("Allreduce, UGAL: HX is slower than PS-IQ", star, reduce["UGAL", "HX"])
        ),
        *(
            _slower(f"Allreduce, {rule}: DF is slower", reduce[rule, "PS-IQ"], reduce[rule, "DF"])
            for rule in ROUTINGS
        ),
        _slower("Sweep3D, MIN: DF is slower", sweep3d["MIN", "PS-IQ"], sweep3d["MIN", "DF"]),
        alike("but marginally: DF to PS-IQ", sweep3d["MIN", "PS-IQ"], sweep3d["MIN", "DF"]),
        *(
            _of_hyperx(
                name,
                alike(
                    f"Sweep3D, UGAL: alike {name}", sweep3d["UGAL", name], sweep3d["UGAL", "PS-IQ"]
                ),
            )
            for name in ("HX", "FT")
        ),
        _slower("Sweep3D, UGAL: DF is slower", sweep3d["UGAL", "PS-IQ"], sweep3d["UGAL", "DF"]),
        _slower(
            "PS-IQ gains less by UGAL with Sweep3D: MIN over UGAL, against Allreduce's",
            sweep3d["MIN", "PS-IQ"] / sweep3d["UGAL", "PS-IQ"],
            reduce["MIN", "PS-IQ"] / star,
        ),
    )
    first, *others_by_tables = (
        claim if BY_UGAL in claim.interpretation and "PS-IQ" not in claim.says else _read(claim)
        for claim in by_tables
    )
    tree = alike("FT is alike with MIN and UGAL", reduce["MIN", "FT"], reduce["UGAL", "FT"])
    return (first, tree, *others_by_tables)


def _read(claim: PaperClaim) -> PaperClaim:
    """The claim, read as of PolarStar and Dragonfly by our tables."""
    read = " ".join(filter(None, (claim.interpretation, BY_OUR_TABLES)))
    return replace(claim, interpretation=read)


def in_all_settings(claims: Sequence[PaperClaim]) -> PaperClaim:
    """A statement on whole networks, of which one claim for each setting is given.

    It is the claim of the first setting if it holds in all of them or in none. Else it is not
    computed; nor is an order of times that are as near as `NEAR_TIMES` in some setting.
    """
    first = claims[0]
    ratios = [_ratio(claim) for claim in claims]
    between = f"By the setting {min(ratios):.3g} to {max(ratios):.3g} of the other."
    ordered = first.relation != "="
    if ordered and any(abs(ratio - 1) <= NEAR_TIMES for ratio in ratios):
        return replace(first, computed=None, reason=f"{between} {SAME_TIMES}")
    holds = {claim.verdict in HOLDS for claim in claims}
    if len(holds) > 1:
        return replace(first, computed=None, reason=f"{between} {UNLIKE}")
    if holds == {True}:
        return first
    if BY_UGAL in first.interpretation:
        return replace(first, computed=None, reason=f"{between} {first.interpretation}")
    return replace(first, reason=f"{between} {OTHER_SIMULATOR}")


def _of_hyperx(name: str, claim: PaperClaim) -> PaperClaim:
    """The claim; of HyperX with UGAL it is a reading, as its routing is not the paper's."""
    if name != "HX":
        return claim
    return replace(claim, interpretation=" ".join(filter(None, (claim.interpretation, BY_UGAL))))


def _ratio(claim: PaperClaim) -> float:
    """The computed value of a claim over the other one."""
    return (claim.computed or nan) / (claim.printed or nan)


def _bars(cycles: Mapping[MotifKey, float]) -> tuple[Curve, ...]:
    """A bar for each network and routing, as curves with steps."""
    return tuple(
        Curve(f"{key.network}-{key.rule}", (n - 0.4, n + 0.4), (value,))
        for n, (key, value) in enumerate(cycles.items())
    )


def _slower(says: str, fast: float, slow: float) -> PaperClaim:
    """The claim that one time is longer than another."""
    return PaperClaim(says, fast, slow, ">")
