"""IBNL files: the systems of ibdm's tools (ibdmchk, ibtopodiff, ibdiagnet), one a number of ports.

The grammar is in ibdm-ibnl-file(1) of ibutils. Ports are called P1, P2, … by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.tables.build import Build

ADAPTER = "adapter"
"""The system of a host: one adapter with one port."""


def system(ports: int) -> str:
    """The name of a switch's system. It may not begin with SW."""
    return f"switch_{ports}"


def definitions(build: Build) -> Iterator[tuple[str, bytes]]:
    """The name and the definition of each system: switches, and the adapter."""
    for ports in sorted({len(names) for names in build.wiring.port_names}):
        yield system(ports), _definition(system(ports), "SW", ports)
    yield ADAPTER, _definition(ADAPTER, "CA", 1)


def _definition(name: str, kind: str, ports: int) -> bytes:
    lines = [f"TOPSYSTEM {name}", "", f"NODE {kind} {ports} {name} U1"]
    lines += [f"{port} -> P{port}" for port in range(1, ports + 1)]
    return "\n".join([*lines, "", ""]).encode()
