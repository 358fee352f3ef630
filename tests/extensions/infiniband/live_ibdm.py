"""ibdmchk, of Debian's ibutils: credit loops in the tables that a real OpenSM dumped."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.extensions.infiniband.live_opensm import Subnet

LID = re.compile(r"LID:([0-9A-F]{4}) PN:")
ADAPTER = re.compile(r"\{ CA(?:-SM)? .*? NodeGUID:([0-9A-F]{16}) PortGUID:([0-9A-F]{16})", re.I)


def credit_loops(
    running: Subnet, lmc: int, levels: dict[tuple[int, int], int], patience: float = 120
) -> tuple[int, bool]:
    """The paths between hosts that it followed, and whether it says that there are credit loops.

    It wants LIDs that are 1 modulo 2^LMC, switches' too, so it gets OpenSM's dumps with other LIDs.

    Args:
        running: its dumps.
        lmc: of all hosts.
        levels: the service level by two port GUIDs, 0 where they are not.
        patience: seconds that it may take.
    """
    step, folder = 1 << lmc, running.folder
    base = {lid: 1 + step * n for n, lid in enumerate(sorted(running.lids().values()))}
    hosts, lids = _adapters(folder), running.lids()
    subnet = (folder / "opensm-subnet.lst").read_text()
    renamed = LID.sub(lambda m: f"LID:{base[int(m[1], 16)]:04X} PN:", subnet)
    (folder / "ibdm.lst").write_text(renamed)
    (folder / "ibdm.fdbs").write_text(
        "".join(_tables(folder, base, {lids[guid] for guid in hosts}, step))
    )
    with (folder / "ibdm.psl").open("w") as file:
        for source, node in hosts.items():
            for port in hosts:
                level = levels.get((source, port), 0)
                for bit in range(step):
                    file.write(f"0x{node:016x} {base[lids[port]] + bit} {level}\n")
    files = {"-s": "lst", "-f": "fdbs", "-c": "psl"}
    command = ["ibdmchk", "-m", "opensm.mcfdbs", "-l", str(lmc), "-d", "opensm-sl2vl.dump"]
    command += [word for flag, end in files.items() for word in (flag, f"ibdm.{end}")]
    said = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=patience
    ).stdout
    # It may crash after its verdict, so its exit status says nothing.
    (followed,) = re.findall(r"Scanned:(\d+) CA to CA paths", said)
    loops, none = "credit loops in routing" in said, "no credit loops found" in said
    assert loops != none, said[-2000:]
    return int(followed), loops


def _adapters(folder: Path) -> dict[int, int]:
    """The node GUID of every adapter by its port GUID."""
    found = ADAPTER.findall((folder / "opensm-subnet.lst").read_text())
    return {int(port, 16): int(node, 16) for node, port in found}


def _tables(folder: Path, base: dict[int, int], hosts: set[int], step: int) -> Iterator[str]:
    """The lines of the dump of tables with other LIDs."""
    own = {lid + bit: base[lid] + bit for lid in hosts for bit in range(step)}
    for line in (folder / "opensm.fdbs").read_text().splitlines(keepends=True):
        if not line.startswith("0x"):
            yield line
            continue
        lid, rest = int(line[:6], 16), line[6:]
        if lid in own:
            yield f"0x{own[lid]:04X}{rest}"
        elif lid in base:
            yield from (f"0x{base[lid] + bit:04X}{rest}" for bit in range(step))
