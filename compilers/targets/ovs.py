"""The ovs target: a switch's program as text for `ovs-ofctl add-groups` and `add-flows`.

The same rows as `compilers.targets.openflow` sends, from the same pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compilers.addressing import format_mac
from compilers.build import Build
from compilers.targets.openflow_pipeline import CAPABILITIES, Pipeline, marker_cookie
from compilers.targets.rendering import Renderer

FILES = ("groups.txt", "flows.txt")


@dataclass(frozen=True, slots=True)
class Host:
    """A host as the templates print it; ipv6 is "" without an IPv6 pool."""

    port: int
    mac: str
    ipv4: str
    ipv6: str


def render(
    build: Build,
    out: Path,
    templates: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write OUT/<node>/groups.txt and flows.txt for every switch of the build.

    Args:
        build: what to render.
        out: the folder; files that stand in it are replaced one by one, each whole or not at all.
        templates: a folder with templates of the user's own, `ovs/flows.txt.j2` for instance.
        progress: called with (switches done, all switches).

    Raises:
        InputError: the build asks for what this target cannot do, a template of the user's is
            wrong, or OUT cannot be written.
    """
    replace(CAPABILITIES, target="ovs").require(build)
    renderer = Renderer("ovs", templates)
    fabric = Fabric.of(build)
    for vertex, name in enumerate(build.wiring.names):
        renderer.write(out / name, FILES, fabric.variables(vertex))
        if progress:
            progress(vertex + 1, build.tables.switches)


@dataclass(frozen=True, slots=True)
class Fabric:
    """What the templates of all switches share: every prefix as text, once."""

    pipeline: Pipeline
    networks: list[str]
    networks6: list[str]

    @classmethod
    def of(cls, build: Build) -> Fabric:
        """The texts of a build's prefixes."""
        a, vertices = build.addressing, range(build.tables.switches)
        return cls(
            pipeline=Pipeline(build),
            networks=[str(a.network(v)) for v in vertices],
            networks6=[str(a.network6(v)) for v in vertices] if a.ipv6 else [],
        )

    def variables(self, vertex: int) -> dict[str, Any]:
        """The variables of a switch's templates (docs/openflow.md lists them)."""
        build = self.pipeline.build
        prefix, egress = (column.tolist() for column in self.pipeline.routes(vertex))
        classes = self.pipeline.classes(vertex).tolist()
        ports = build.tables.classes.port[vertex].tolist()
        return {
            "node": build.wiring.names[vertex],
            "identity": build.identity,
            "marker_cookie": f"{marker_cookie(build):#x}",
            "gateway_mac": format_mac(build.addressing.gateway_mac),
            "ipv4_length": build.addressing.ipv4_length,
            "ipv4_block": self.networks[vertex],
            "ipv6_block": self.networks6[vertex] if self.networks6 else "",
            "ipv4_routes": [(self.networks[p], k) for p, k in zip(prefix, egress, strict=True)],
            "ipv6_routes": [(self.networks6[p], k) for p, k in zip(prefix, egress, strict=True)]
            if self.networks6
            else [],
            "hosts": [self._host(vertex, host) for host in self.pipeline.hosts(vertex).tolist()],
            "classes": [(k, k + 1) for k in classes],
            "groups": [(k + 1, ports[k]) for k in classes],
        }

    def _host(self, vertex: int, host: int) -> Host:
        build = self.pipeline.build
        a = build.addressing
        return Host(
            port=int(build.wiring.host_port[vertex, host]),
            mac=a.mac(vertex, host),
            ipv4=str(a.host(vertex, host)),
            ipv6=str(a.host6(vertex, host)) if a.ipv6 else "",
        )
