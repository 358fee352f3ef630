"""The interface of proofs that other packages add, for whole fabrics and several failures.

A package registers such a proof by an entry point of the group `polarfab.proofs`. It may prove a
very large fabric by its algebra, without a look at each row, or prove two failures at once.
`delivery.verify` asks all of them by `first_result`. Every method of `WholeFabricProof` proves what
its name says; None means that this proof does not say.
"""

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
    """What is proved of packets to each of S switches under two failures at once."""

    holds: NDArray[np.bool_]
    """bool[S], whether it is proved that no packet is lost."""
    stretch: NDArray[Any]
    """int64[S], the most links that repairs add to a path."""
    beyond: NDArray[Any]
    """int64[S], by how many links a path is longer than the longest path without failures."""


@dataclass(frozen=True, slots=True)
class ModuleBounds:
    """Bounds for packets that meet a dead module, counted from the switch where they meet it."""

    links: int
    """The links of its whole path."""
    more: int
    """The links of the detour: those that the repair adds to the path."""


class WholeFabricProof(Protocol):
    """A proof of whole fabrics, which an entry point of the group `polarfab.proofs` names."""

    def delivery(self, build: Build, seed: int) -> tuple[int, ...] | None:
        """Prove that all pairs of switches have a minimal path.

        Args:
            build: its cables and prefixes are sound (`build_soundness.walkable`).
            seed: chooses what is looked at by chance.

        Returns:
            One of three results. The number of pairs for each number of links, if delivery is
            proved. An empty tuple, if the algebra proves delivery but some row of the tables, as it
            is computed, contradicts the algebra. None, if delivery is not proved.
        """

    def states(
        self, build: Build, counts: tuple[int, ...], kinds: tuple[str, ...]
    ) -> LocalProof | None:
        """Prove that no packet of hosts is lost, on all its paths and under single failures.

        Args:
            build: its cables and prefixes are sound.
            counts: what `delivery` returned for it.
            kinds: the kinds of failures, of `link` and `node`; none: without failures only.

        Returns:
            The proof; None: it is not proved.
        """

    def two_failures(self, build: Build) -> TwoFailures | None:
        """Prove that two failures lose no packets to some destinations, with bounds on the paths.

        Args:
            build: minimal delivery and the repair of single failures are proved.

        Returns:
            What is proved; None: nothing is.
        """

    def modules(self, build: Build) -> ModuleBounds | None:
        """Prove that the failure of any one module loses no packet, with bounds on the paths.

        Args:
            build: minimal delivery is proved.

        Returns:
            The bounds; None: it is not proved.
        """


def first_result(ask: Callable[[WholeFabricProof], T | None]) -> T | None:
    """The first result that is not None, of all proofs that packages registered.

    Args:
        ask: calls one method of a proof.
    """
    proofs = (load(entry) for entries in registered(PROOFS).values() for entry in entries)
    return next((result for proof in proofs if (result := ask(proof)) is not None), None)
