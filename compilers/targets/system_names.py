"""The names that a system has for nodes and ports: what is rendered, and what devices print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compilers.tables.build import Build
from compilers.wiring.wiring import Wiring

HOSTNAME = 63
PORT = "{node} {port}"


def hostname(node: str) -> str:
    """A host name that every system takes: letters, digits and -, two or more, a letter first."""
    text = re.sub(r"[^A-Za-z0-9-]", "-", node).rstrip("-")
    if len(text) == 1 or not text[:1].isalpha():
        text = f"sw-{text}"
    return text[:HOSTNAME].rstrip("-")


@dataclass(frozen=True, slots=True)
class SystemNames:
    """What a system calls the nodes and the ports of a build.

    wiring: ports named as the system names them. nodes: host names by vertex. short: how names of
    ports begin, and what devices print in its place. form: the description of a port by what is at
    the other end, its node and port.
    """

    wiring: Wiring
    nodes: tuple[str, ...]
    short: tuple[str, str] = ("", "")
    form: str = PORT

    @classmethod
    def of(
        cls,
        build: Build,
        host: Callable[[str], str] = str,
        short: tuple[str, str] = ("", ""),
        form: str = PORT,
    ) -> SystemNames:
        """Those of a build, whose ports are named as the system names them.

        Args:
            build: what is rendered.
            host: makes a host name of a node's.
            short: see the class.
            form: see the class.
        """
        return cls(build.wiring, tuple(map(host, build.wiring.names)), short, form)

    def ports(self, kind: int) -> list[tuple[str, ...]]:
        """All names of each port of a node type by number, the one in configurations first."""
        word, other = self.short
        return [
            (name, name.replace(word, other, 1)) if word and name.startswith(word) else (name,)
            for name in self.wiring.port_names[kind]
        ]

    def description(self, far: int, far_port: int) -> str:
        """That of a port whose cable leads to a port of a vertex."""
        port = self.wiring.port_name(far, far_port)
        return self.form.format(node=self.nodes[far], port=port)

    def descriptions(self, vertex: int) -> Iterator[tuple[str, int]]:
        """Those of the ports of a vertex that have a cable to another switch, and their numbers."""
        w = self.wiring
        columns = (column[vertex].tolist() for column in (w.port, w.far, w.far_port))
        for port, far, far_port in zip(*columns, strict=True):
            if far >= 0:
                yield self.description(far, far_port), port
