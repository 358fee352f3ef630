"""A fabric whose hosts choose paths by source routing, and probe its links."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compilers.host_paths.host_path_set import HostPathSet
    from compilers.host_paths.localisation import Probing
    from compilers.tables.build import Build


class SourceRoutedFabric(ABC):
    """The part of `Fabric` that hosts choose paths by."""

    @property
    @abstractmethod
    def builds(self) -> tuple[Build, ...]:
        """The build of each plane."""

    def paths(
        self,
        source: str | int,
        destination: str | int,
        count: int = 8,
        planes: Sequence[int] = (),
        fail: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> HostPathSet:
        """The paths that a host may take to another over all planes, edge-disjoint ones first.

        Args:
            source: a node, a vertex, a host or an address.
            destination: the same.
            count: how many, and so the entropy values.
            planes: which of them, from 1; none for all.
            fail: what is down: nodes, and links as `A-B`; its paths give their places to others.
            options: of target srv6.

        Raises:
            InputError: a word names nothing, both ends are at one switch, or no path is left.
        """
        from compilers.host_paths.host_path_set import host_paths

        return host_paths(self.builds, source, destination, count, planes, fail, options)

    def probing(self, options: Mapping[str, str] | None = None) -> Probing:
        """The fewest probes over all links of all planes: `.probes`, `.localise(lost, arrived)`.

        Args:
            options: of target srv6.

        Raises:
            InputError: a switch has no hosts, or the fabric no IPv6 pool.
        """
        from compilers.host_paths.localisation import Probing

        return Probing.of(self.builds, options)
