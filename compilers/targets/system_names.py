"""The names that a system has for nodes and ports: what is rendered, and what devices print.

One table for every direction: `render` and `explain --target` write its names, `check wiring`,
`check routes` and `push` understand them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from compilers.tables.build import Build
from compilers.targets.routed.interfaces import Interfaces, PhysicalPort
from compilers.wiring.wiring import Wiring

HOSTNAME = 63
PORT = "{node} {port}"


def hostname(node: str) -> str:
    """A host name that every system takes: letters, digits and -, two or more, a letter first."""
    text = re.sub(r"[^A-Za-z0-9-]", "-", node).rstrip("-")
    if len(text) == 1 or not text[:1].isalpha():
        text = f"sw-{text}"
    return text[:HOSTNAME].rstrip("-")


@dataclass(frozen=True)
class SystemNames:
    """What a system calls the nodes and the ports of a build.

    wiring: ports named as the system names them. nodes: host names by vertex. physical: the ports
    of each node type by number, with cage, part and alias. short: how names of ports begin, and
    what devices print in its place. form: the description of a port by what is at the other end,
    its node and port.
    """

    wiring: Wiring
    nodes: tuple[str, ...]
    physical: tuple[tuple[PhysicalPort, ...], ...] = ()
    short: tuple[str, str] = ("", "")
    form: str = PORT

    @classmethod
    def of(
        cls,
        build: Build,
        host: Callable[[str], str] = str,
        interfaces: Interfaces | None = None,
        form: str = PORT,
        target: str = "",
    ) -> SystemNames:
        """Those of a build.

        Args:
            build: what is rendered.
            host: makes a host name of a node's.
            interfaces: how the system names its ports; None: as the build does.
            form: see the class.
            target: whose names go before the system's.
        """
        nodes = tuple(map(host, build.wiring.names))
        if interfaces is None:
            return cls(build.wiring, nodes, form=form)
        named = interfaces.named(build, target).wiring
        physical = tuple(map(tuple, interfaces.ports(build, target)))
        return cls(named, nodes, physical, interfaces.short, form)

    def ports(self, kind: int) -> list[tuple[str, ...]]:
        """All names of each port of a node type by number, the one in configurations first."""
        word, other = self.short
        aliases = [port.alias for port in self.physical[kind]] if self.physical else []
        names = self.wiring.port_names[kind]
        return [
            tuple(
                dict.fromkeys(
                    text
                    for text in (
                        name,
                        name.replace(word, other, 1) if word and name.startswith(word) else "",
                        *aliases[number : number + 1],
                    )
                    if text
                )
            )
            for number, name in enumerate(names)
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

    @cached_property
    def _known(self) -> dict[str, int]:
        return {hostname(name).lower(): vertex for vertex, name in enumerate(self.wiring.names)}

    def vertex(self, said: str) -> int | None:
        """The vertex that a device means by its own name, in any case, with or without a domain."""
        forms = (hostname(said).lower(), hostname(said.partition(".")[0]).lower())
        return next((self._known[form] for form in forms if form in self._known), None)
