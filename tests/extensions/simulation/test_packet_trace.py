"""Packets of a file: times by formula, mistakes by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from extensions.simulation import trace_times
from inventory.problems import InputError
from polarfab.fabric import Fabric

ALONE = 11
"""Cycles of a packet of four flits over one link."""


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 3}})


def host_of_a_neighbour(fabric: Fabric, switch: int) -> int:
    return 2 * int(fabric.build.wiring.far[switch, 0])


def test_times_are_those_of_the_file(fabric: Fabric, tmp_path: Path) -> None:
    near, file = host_of_a_neighbour(fabric, 0), tmp_path / "trace"
    for lines, worst in (
        ([f"100 0 {near} 4"], ALONE),
        ([f"100 0 {near} 3"], ALONE),  # a whole packet goes
        ([f"100 0 {near} 16"], ALONE + 12),
        ([f"100 0 {near} 4", f"100 0 {near} 4", "", "# none"], ALONE + 4),
        ([f"90000 0 {near} 4", f"100 0 {near} 4"], ALONE),
        ([f"100 1 {near} 4", f"100 0 {near} 4"], ALONE + 4),  # one link
        ([f"100 1 {near} 4", f"102 0 {near} 4"], ALONE + 2),
    ):
        file.write_text("\n".join(lines))
        found = trace_times(fabric, file, hosts=2)
        assert (found.worst_latency, found.lost) == (worst, 0)
        cycles = [int(line.split()[0]) for line in lines if line[:1].isdigit()]
        assert (found.messages, found.cycles) == (len(cycles), max(cycles) + worst)


def test_every_packet_of_a_file_comes(fabric: Fabric, tmp_path: Path) -> None:
    hosts, file = 26, tmp_path / "trace"
    pairs = [(t, s, d) for t in (0, 7) for s in range(hosts) for d in range(hosts) if s != d]
    file.write_text("".join(f"{t} {s} {d} 8\n" for t, s, d in pairs))
    found = trace_times(fabric, file, hosts=2)
    assert (found.messages, found.packets, found.lost) == (len(pairs), 2 * len(pairs), 0)
    assert found.cycles is not None
    assert found.cycles >= 2 * 25 * 8  # what a host sends and gets
    assert ALONE + 4 <= found.median_latency <= found.p99_latency <= found.worst_latency


def test_lines_that_are_none(fabric: Fabric, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    for line in ("1 0 0 4", "1 0 26 4", "-1 0 3 4", "1 0 3 0", "1 0 3", "x", "1 0 3 4 5"):
        file.write_text(f"1 0 3 4\n{line}\n")
        with pytest.raises(InputError, match=r"trace:2: required a cycle, two hosts of 26"):
            trace_times(fabric, file, hosts=2)
    file.write_text("# nothing\n")
    with pytest.raises(InputError, match="1 to 8,388,608 packets, given 0"):
        trace_times(fabric, file, hosts=2)


def test_at_the_command_line(fabric: Fabric, tmp_path: Path, polarfab) -> None:
    fabric.save(tmp_path / "build")
    near, file = host_of_a_neighbour(fabric, 0), tmp_path / "trace"
    file.write_text(f"5 0 {near} 4\n")
    words = ("simulate", tmp_path / "build", "--hosts-per-node", 2, "--trace", file)
    code, out, err = polarfab(*words)
    assert (code, err) == (0, "")
    assert "1 message in 1 packet, all there after 16 cycles" in out
    code, out, _ = polarfab(*words, "--json", "--link", 3)
    assert json.loads(out)["mean_latency"] == ALONE + 2
    for more, wrong in (
        (("--pattern", "uniform"), "--trace: required a pattern, a collective or a trace"),
        (("--level", "flit"), "--level packet for a collective or a trace"),
        (("--load", ".5"), "--trace without --load"),
    ):
        code, _, err = polarfab(*words, *more)
        assert code == 2
        assert wrong in err
