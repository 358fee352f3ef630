"""Figure 11 of the PolarStar paper: how long Allreduce and Sweep3D take on four networks (§10).

A *motif* is a communication pattern of applications, here a collective of `motif_times`. The paper
does not print its message sizes and buffers legibly. So `motifs` simulates all motifs in several
*settings* (`SETTINGS`): sizes of messages, buffers, and process grids. It judges a statement only
if all settings agree on it. `polarstar_paper` lists the figure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import NamedTuple

from compilers.drawing.plots import Curve, Panel
from extensions.papers.curve_presentation import network_lines
from extensions.papers.exhibit import HOLDS, Evidence, PaperClaim
from extensions.papers.motif_times import motif_time
from extensions.papers.polarstar.polarstar_simulation import (
    BY_OUR_TABLES,
    ROUTINGS,
    fabric_of,
    fabrics_of,
    networks,
    ratio_claim,
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


DEFAULT_BUFFER = SimulationSettings().buffer
"""The flits that the buffers of a port hold by default."""
GRIDS: tuple[Mapping[str, int], ...] = (
    {},
    {"PS-IQ": 35, "DF": 36, "HX": 36, "FT": 36},
    {"PS-IQ": 28, "DF": 24, "HX": 24, "FT": 24},
)
"""By number of the grid, the rows of Sweep3D's process grid on each network. Grid 0, which lists no
rows, is as square as can be, with 70 rows on PS-IQ and 72 on the others. Grid 1 has half as many
rows, and grid 2 about a third."""


class MotifSetting(NamedTuple):
    """One setting, in which all motifs are simulated."""

    scale: float
    """The size of messages, as a multiple of `MESSAGES`."""
    buffer: int = DEFAULT_BUFFER
    """The flits that the buffers of a port hold."""
    grid: int = 0
    """The number of Sweep3D's process grid, an index into `GRIDS`."""

    def difference(self) -> str:
        """How it differs from `MotifSetting(1)`, the first of `SETTINGS`, in words."""
        differences = []
        if self.scale != 1:
            differences.append(f"messages {self.scale:g} times as large")
        if self.buffer != DEFAULT_BUFFER:
            differences.append(f"{self.buffer:,} flits a port")
        if self.grid != 0:
            rows = sorted({*GRIDS[self.grid].values()})
            differences.append(f"grids of {' or '.join(map(str, rows))} rows for Sweep3D")
        return ", ".join(differences)


SETTINGS = (
    MotifSetting(1),
    MotifSetting(1 / 4),
    MotifSetting(1, buffer=1024),
    MotifSetting(1, grid=1),
    MotifSetting(1, grid=2),
)
"""The settings for networks of the paper's size. Claims and pictures show values of the first."""
NEAR_TIMES = 0.05
"""The relative difference of two times up to which their order is not decided: simulated times
differ as much from SimGrid's (the evidence of `simulate`)."""
SAME_TIMES = "In some settings they are as near as times are to those of SimGrid, 5 %."
"""Why the order of two times is not computed that differ by less than `NEAR_TIMES`, the error of
simulated times against SimGrid."""
SETTINGS_DISAGREE = "So it depends on the setting, and the paper's numbers are not legible."
"""Why a statement on which settings disagree is not computed."""
OTHER_SIMULATOR = "The paper's simulator is SST, with other switches and with network cards."
"""Why a statement may not hold here."""
BY_UGAL = "HyperX takes UGAL over all shortest paths, where the paper's has DOAL."
"""How claims on HyperX are read."""


class MotifKey(NamedTuple):
    """A network that is simulated under a motif."""

    routing: str
    """The routing, of `ROUTINGS`."""
    network: str
    """The short name of the network."""


Cycles = Mapping[str, Mapping[MotifKey, float]]
"""The cycles by motif, and by routing and network."""


def motifs(quick: bool) -> Evidence:
    """Figure 11: how long Allreduce and Sweep3D take, on four networks."""
    compared = {name: networks(quick)[name] for name in MOTIF_NETWORKS}
    settings = SETTINGS[:1] if quick else SETTINGS
    cycles_by_setting = _cycles_of(settings, quick)
    first_cycles = cycles_by_setting[0]
    claims = [_motif_claims(cycles["Allreduce"], cycles["Sweep3D"]) for cycles in cycles_by_setting]
    panels = tuple(
        Panel(motif, "", "cycles", _bars(first_cycles[motif]), steps=True) for motif in MOTIFS
    )
    judged_claims = claims[0] if quick else map(in_all_settings, zip(*claims, strict=True))
    setup = (
        *_setup(quick),
        *_speedups(first_cycles["Allreduce"], quick),
        *network_lines(fabrics_of(compared)),
    )
    return Evidence((*judged_claims,), panels=panels, setup=setup, is_quick=quick)


def _setup(quick: bool) -> tuple[str, ...]:
    """Lines that say how motifs were simulated."""
    sizes = QUICK_MESSAGES if quick else MESSAGES
    lines = (
        "A cycle is a flit of 64 bytes; 4 virtual channels, any free one is taken;"
        f" {DEFAULT_BUFFER} flits a port; packets of 4 flits, which move as one; links of one"
        " cycle; a motif once, with seed 0, over all hosts of a network that is empty.",
        *(f"{motif}: {MOTIFS[motif]}, {sizes[motif]:,} bytes." for motif in MOTIFS),
    )
    if quick:
        return lines
    other_settings = "; ".join(setting.difference() for setting in SETTINGS[1:])
    return (
        *lines,
        f"Also with {other_settings}. A statement is judged if these settings agree on it.",
        f"{OTHER_SIMULATOR} The paper's text has lost its numbers of bytes, buffers, latencies"
        " and repetitions.",
    )


def _speedups(allreduce: Mapping[MotifKey, float], quick: bool) -> tuple[str, ...]:
    """A line with the two speedups that the text of the paper has lost; () of small networks."""
    if quick:
        return ()
    minimal, adaptive = (
        allreduce[MotifKey(routing, "DF")] / allreduce[MotifKey(routing, "PS-IQ")]
        for routing in ROUTINGS
    )
    speedups = f"{minimal:.3g} (MIN) and {adaptive:.3g} (UGAL)"
    return (f"Nor does it have the speedups of PS-IQ over DF with Allreduce: here {speedups}.",)


def _cycles_of(settings: Sequence[MotifSetting], quick: bool) -> list[Cycles]:
    """The cycles in each setting. A network is compiled once for all settings."""
    cycles: list[dict[str, dict[MotifKey, float]]] = [
        {motif: {} for motif in MOTIFS} for _ in settings
    ]
    for key in (MotifKey(routing, name) for routing in ROUTINGS for name in MOTIF_NETWORKS):
        for setting, by_motif in zip(settings, cycles, strict=True):
            for motif, by_key in by_motif.items():
                time = motif_time(time_key(key, motif, setting, quick), quick).cycles
                by_key[key] = inf if time is None else float(time)
    return [*cycles]


def time_key(key: MotifKey, motif: str, setting: MotifSetting, quick: bool) -> TimeKey:
    """The key of a motif's time on a network in a setting, for `motif_time`."""
    fabric = fabric_of(key.network, networks(quick)[key.network], key.routing)
    size = int((QUICK_MESSAGES if quick else MESSAGES)[motif] * setting.scale)
    rows = GRIDS[setting.grid].get(key.network, 0) if motif == "Sweep3D" else 0
    fields = {} if setting.buffer == DEFAULT_BUFFER else {"buffer": setting.buffer}
    return TimeKey(
        fabric.text(),
        collective=MOTIFS[motif],
        size=size,
        rows=rows,
        seed=0,
        settings=json.dumps(fields),
    )


def _motif_claims(
    allreduce: Mapping[MotifKey, float], sweep: Mapping[MotifKey, float]
) -> tuple[PaperClaim, ...]:
    """The paper's words on figure 11, from the cycles of both motifs."""
    # By plain pairs, so that the claims below can name a time as `cycles["MIN", "FT"]`.
    reduce_cycles = {(key.routing, key.network): cycles for key, cycles in allreduce.items()}
    sweep_cycles = {(key.routing, key.network): cycles for key, cycles in sweep.items()}
    gain_of_sweep = sweep_cycles["MIN", "PS-IQ"] / sweep_cycles["UGAL", "PS-IQ"]
    gain_of_allreduce = reduce_cycles["MIN", "PS-IQ"] / reduce_cycles["UGAL", "PS-IQ"]
    return (
        *_allreduce_claims(reduce_cycles),
        *_sweep_claims(sweep_cycles),
        _slower_claim(
            "PS-IQ gains less by UGAL with Sweep3D: MIN over UGAL, against Allreduce's",
            faster=gain_of_sweep,
            slower=gain_of_allreduce,
            reading=BY_OUR_TABLES,
        ),
    )


def _allreduce_claims(cycles: Mapping[tuple[str, str], float]) -> Iterator[PaperClaim]:
    """The paper's words on Allreduce, from its cycles by routing and network."""
    star = cycles["UGAL", "PS-IQ"]
    fastest_other = min(time for (_, network), time in cycles.items() if network != "FT")
    yield _slower_claim(
        "Allreduce is fastest on FT: MIN, beside all others",
        faster=cycles["MIN", "FT"],
        slower=fastest_other,
        reading=BY_OUR_TABLES,
    )
    yield ratio_claim(
        "FT is alike with MIN and UGAL", reference=cycles["MIN", "FT"], value=cycles["UGAL", "FT"]
    )
    for network, reading in (("PS-IQ", BY_OUR_TABLES), ("DF", BY_OUR_TABLES), ("HX", BY_UGAL)):
        yield _slower_claim(
            f"Allreduce, {network}: MIN is slower than UGAL",
            faster=cycles["UGAL", network],
            slower=cycles["MIN", network],
            reading=reading,
        )
    comparable = ratio_claim(
        "Allreduce, UGAL: PS-IQ is comparable to FT", reference=cycles["UGAL", "FT"], value=star
    )
    yield _with_reading(comparable, BY_OUR_TABLES)
    yield _slower_claim(
        "Allreduce, UGAL: HX is slower than PS-IQ",
        faster=star,
        slower=cycles["UGAL", "HX"],
        reading=f"{BY_UGAL} {BY_OUR_TABLES}",
    )
    for routing in ROUTINGS:
        yield _slower_claim(
            f"Allreduce, {routing}: DF is slower",
            faster=cycles[routing, "PS-IQ"],
            slower=cycles[routing, "DF"],
            reading=BY_OUR_TABLES,
        )


def _sweep_claims(cycles: Mapping[tuple[str, str], float]) -> Iterator[PaperClaim]:
    """The paper's words on Sweep3D, from its cycles by routing and network."""
    star, dragonfly = cycles["MIN", "PS-IQ"], cycles["MIN", "DF"]
    yield _slower_claim(
        "Sweep3D, MIN: DF is slower", faster=star, slower=dragonfly, reading=BY_OUR_TABLES
    )
    marginal = ratio_claim("but marginally: DF to PS-IQ", reference=star, value=dragonfly)
    yield _with_reading(marginal, BY_OUR_TABLES)
    star, dragonfly = cycles["UGAL", "PS-IQ"], cycles["UGAL", "DF"]
    for network, reading in (("HX", BY_UGAL), ("FT", BY_OUR_TABLES)):
        comparable = ratio_claim(
            f"Sweep3D, UGAL: alike {network}", reference=cycles["UGAL", network], value=star
        )
        yield _with_reading(comparable, reading)
    yield _slower_claim(
        "Sweep3D, UGAL: DF is slower", faster=star, slower=dragonfly, reading=BY_OUR_TABLES
    )


def _with_reading(claim: PaperClaim, reading: str) -> PaperClaim:
    """The claim with one more sentence on how the paper's words are read."""
    interpretation = " ".join(filter(None, (claim.interpretation, reading)))
    return replace(claim, interpretation=interpretation)


def in_all_settings(claims: Sequence[PaperClaim]) -> PaperClaim:
    """The claim for one statement, from its claims in all settings.

    It is the claim of the first setting if the statement holds in all settings or in none. It is
    not computed if settings disagree, or if it orders two times that are within `NEAR_TIMES` of
    each other in some setting.

    Args:
        claims: the claim in each setting of `SETTINGS`.
    """
    first = claims[0]
    ratios = [_ratio(claim) for claim in claims]
    ratios_text = f"By the setting {min(ratios):.3g} to {max(ratios):.3g} of the other."
    is_order = first.relation != "="
    if is_order and any(abs(ratio - 1) <= NEAR_TIMES for ratio in ratios):
        return replace(first, computed=None, reason=f"{ratios_text} {SAME_TIMES}")
    verdicts_hold = {claim.verdict in HOLDS for claim in claims}
    if len(verdicts_hold) > 1:
        return replace(first, computed=None, reason=f"{ratios_text} {SETTINGS_DISAGREE}")
    if verdicts_hold == {True}:
        return first
    if BY_UGAL in first.interpretation:
        return replace(first, computed=None, reason=f"{ratios_text} {first.interpretation}")
    return replace(first, reason=f"{ratios_text} {OTHER_SIMULATOR}")


def _ratio(claim: PaperClaim) -> float:
    """The left side of a claim's relation over the right side."""
    return (claim.computed or nan) / (claim.printed or nan)


def _bars(cycles: Mapping[MotifKey, float]) -> tuple[Curve, ...]:
    """A bar for each network and routing, as curves with steps."""
    return tuple(
        Curve(f"{key.network}-{key.routing}", (position - 0.4, position + 0.4), (value,))
        for position, (key, value) in enumerate(cycles.items())
    )


def _slower_claim(says: str, faster: float, slower: float, reading: str) -> PaperClaim:
    """The claim that one time is longer than another.

    Args:
        says: what the paper says.
        faster: the time that the paper says is shorter.
        slower: the time that it says is longer.
        reading: how the claim is read, in a sentence.
    """
    return PaperClaim.of_order(
        says=says,
        first=slower,
        relation=">",
        second=faster,
        interpretation=reading,
    )
