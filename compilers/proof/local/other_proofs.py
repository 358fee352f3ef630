"""Proofs that packages add, of fabrics in which no row is looked at, or several elements fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.entry_points import PROOFS, load, registered
from compilers.tables.build import Build

if TYPE_CHECKING:
    from compilers.proof.local.local_proof import LocalProof

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class TwoFailures:
    """What two failures at once do to packets for each of S switches."""

    holds: NDArray[np.bool_]
    """bool[S], whether nothing is lost."""
    stretch: NDArray[Any]
    """int64[S], no repair adds more links."""
    beyond: NDArray[Any]
    """int64[S], how many links a packet may take beyond the longest path without failures."""


@dataclass(frozen=True, slots=True)
class ModuleBounds:
    """What no packet exceeds from the switch where it meets a dead module."""

    links: int
    """The links of its whole path."""
    more: int
    """The links that the repair adds."""


class WholeFabricProof(Protocol):
    """What an entry point of the group `polarfab.proofs` names."""

    def delivery(self, build: Build, seed: int) -> tuple[int, ...] | None:
        """The pairs by links of their minimal path, if all pairs have one; None: not proved.

        (): it is, and rows that are computed say otherwise.

        Args:
            build: sound cables and prefixes (`build_soundness.walkable`).
            seed: of what is looked at by chance.
        """

    def states(
        self, build: Build, counts: tuple[int, ...], kinds: tuple[str, ...]
    ) -> LocalProof | None:
        """What any failure of a link or switch does to packets, if none is lost; None: not proved.

        Args:
            build: see above.
            counts: what `delivery` says of it.
            kinds: of failures, of `link` and `node`; none: packets of hosts arrive on all paths.
        """

    def two_failures(self, build: Build) -> TwoFailures | None:
        """What any two failures do, where minimal delivery and single repairs are proved."""

    def modules(self, build: Build) -> ModuleBounds | None:
        """Bounds under the death of any one module, if no packet is lost, as above."""


def first(ask: Callable[[WholeFabricProof], T | None]) -> T | None:
    """What the first proof says that says something."""
    proofs = (load(entry) for entries in registered(PROOFS).values() for entry in entries)
    return next((said for proof in proofs if (said := ask(proof)) is not None), None)
