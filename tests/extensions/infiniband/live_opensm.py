"""A real OpenSM on a fabric that ibsim simulates, and what it programmed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until

SHIM = next(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"), None)
Table = dict[int, int]
"""The port for each destination, by port GUID or LID."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """A running subnet manager and the folder that it writes to."""

    folder: Path
    environment: dict[str, str]

    def tables(self) -> dict[int, Table]:
        """The linear forwarding table of every switch, as OpenSM dumped it, by node GUID."""
        tables: dict[int, Table] = {}
        for line in self._dump("lfts"):
            if switch := re.match(r"Unicast lids .* guid 0x([0-9a-f]+) ", line):
                table = tables[int(switch[1], 16)] = {}
            elif entry := re.match(r"0x[0-9a-f]+ (\d+) # .* portguid 0x([0-9a-f]+):", line):
                table[int(entry[2], 16)] = int(entry[1])
        return tables

    def read_tables(self) -> dict[int, Table]:
        """The table of every switch by LID, read from the switches by `dump_fts`."""
        tables: dict[int, Table] = {}
        for line in self._ask("dump_fts").splitlines():
            if switch := re.match(r"Unicast lids .* guid 0x([0-9a-f]+) ", line):
                table = tables[int(switch[1], 16)] = {}
            elif entry := re.match(r"0x([0-9a-f]+) (\d+) : ", line):
                table[int(entry[1], 16)] = int(entry[2])
        return tables

    def lanes(self) -> dict[tuple[int, int, int], list[int]]:
        """The lane of each service level, by switch, in-port and out-port."""
        lanes, switch = {}, 0
        for line in self._dump("sl2vl"):
            if head := re.match(r"Switch 0x([0-9a-f]+),", line):
                switch = int(head[1], 16)
            elif row := re.match(r"(\d+)\s+(\d+)\s+: ([ \d]+)$", line):
                lanes[switch, int(row[1]), int(row[2])] = [int(lane) for lane in row[3].split()]
        return lanes

    def lids(self) -> dict[int, int]:
        """The LID of each port GUID that it gave one."""
        lines = (self.folder / "guid2lid").read_text().splitlines()
        return {int(g, 16): int(lid, 16) for g, lid, _ in (line.split() for line in lines if line)}

    def service_level(self, source: int, destination: int) -> int:
        """That of the path record between two LIDs: what a host would be told."""
        said = self._ask("saquery", "PR", "--slid", str(source), "--dlid", str(destination))
        return int(re.findall(r"\bsl\.+(0x[0-9A-Fa-f]+)", said)[0], 16)

    def trace(self, source: int, destination: int) -> list[int]:
        """The GUIDs of the switches on the way between two LIDs."""
        said = self._ask("ibtracert", str(source), str(destination))
        return [int(guid, 16) for guid in re.findall(r"-> switch port \{0x([0-9a-f]+)\}", said)]

    def _ask(self, *command: str) -> str:
        """What a query says; one that runs out of its second, on a busy machine, is asked again."""

        def answer() -> str:
            done = subprocess.run(
                command,
                cwd=self.folder,  # the simulator's library makes files there
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=90,
            )
            return "" if done.returncode else done.stdout

        return until(answer, f"an answer to {command}")

    def _dump(self, what: str) -> Iterator[str]:
        with (self.folder / f"opensm-{what}.dump").open() as lines:
            yield from lines


@contextmanager
def subnet(rendered: Path, folder: Path, patience: float = 90) -> Iterator[Subnet]:
    """Simulate the fabric of `rendered`, run OpenSM with its files until it says SUBNET UP."""
    folder.mkdir()
    hosts = re.findall(
        r'^(?:Ca|Hca)\s+\d+\s+"([^"]+)"', (rendered / "fabric.net").read_text(), re.M
    )
    environment = os.environ | {
        "PATH": f"{os.environ['PATH']}:/usr/sbin",
        "IBSIM_SOCKNAME": f"polarfab-{os.getpid()}",
        "OSM_TMP_DIR": str(folder),
        "OSM_CACHE_DIR": str(folder),
        "LD_PRELOAD": str(SHIM),
        "SIM_HOST": hosts[0],
    }
    log = folder / "opensm.log"
    size = ("-N", "4000", "-S", "2000", "-P", "200000")
    started: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "output.txt").open("wb") as output:
            simulator = [*("ibsim", "-s", "-n"), *size, str(rendered / "fabric.net")]
            alone = {k: v for k, v in environment.items() if k != "LD_PRELOAD"}
            started.append(
                subprocess.Popen(
                    simulator, env=alone, stdin=subprocess.DEVNULL, stdout=output, stderr=output
                )
            )
            until(
                lambda: b"simulator ready" in (folder / "output.txt").read_bytes(),
                "ibsim",
                patience,
            )
            manager = [
                "opensm",
                "-F",
                str(rendered / "opensm.conf"),
                "-f",
                str(log),
                "-D0x43",
                "-d2",
            ]
            started.append(
                subprocess.Popen(
                    manager,
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            )
        until(lambda: log.exists() and "SUBNET UP" in log.read_text(), "OpenSM", patience)
        yield Subnet(folder, environment | {"SIM_HOST": hosts[1]})
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(timeout=30)
