"""The interface of proofs that other packages add, for whole fabrics and several failures.

A package registers such a proof by an entry point of the group `polarfab.proofs`. It may prove a
very large fabric by its algebra, without a look at each row, or prove two failures at once.
`delivery.verify` calls the same method of all registered proofs (`first_result`). A method of
`WholeFabricProof` returns None if its proof does not apply to a build.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.entry_points import PROOFS, load, registered
from compilers.tables.build import Build

if TYPE_CHECKING:  # for annotations only
    from compilers.proof.local.local_proof import LocalProof

Result = TypeVar("Result")
"""What a method of a proof returns if the proof applies."""


@dataclass(frozen=True, slots=True)
class MinimalDelivery:
    """The proof that all pairs of switches have a minimal path."""

    hop_counts: tuple[int, ...]
    """How many pairs of switches have a minimal path of 0, 1, 2, … links."""
    is_contradicted: bool = False
    """Whether some row of the tables contradicts the algebra that proves delivery. Then nothing is
    proved, and all packets have to be walked."""


@dataclass(frozen=True, slots=True, eq=False)
class TwoFailures:
    """What is proved of packets to each of S switches under two failures at once."""

    holds: NDArray[np.bool_]
    """bool[S], whether it is proved that no packet is lost."""
    stretch: NDArray[Any]
    """int64[S], the most links that repairs add to a path."""
    longer_than_longest: NDArray[Any]
    """int64[S], by how many links a path is longer than the longest path without failures."""


@dataclass(frozen=True, slots=True)
class ModuleBounds:
    """Bounds for packets that meet a dead module, counted from the switch where they meet it."""

    path_links: int
    """The links of the whole path from there on."""
    detour_links: int
    """The links that the repair adds to the path."""


class WholeFabricProof(Protocol):
    """A proof of whole fabrics, which an entry point of the group `polarfab.proofs` names."""

    def prove_delivery(self, build: Build, seed: int) -> MinimalDelivery | None:
        """Prove that all pairs of switches have a minimal path.

        Args:
            build: its cables and prefixes are sound (`build_soundness.unwalkable_values`).
            seed: of the random numbers that choose which rows are looked at.

        Returns:
            The proof; None: delivery is not proved.
        """

    def prove_single_failures(
        self, build: Build, hop_counts: tuple[int, ...], kinds: tuple[str, ...]
    ) -> LocalProof | None:
        """Prove that no packet of hosts is lost, on all its paths and under single failures.

        Args:
            build: its cables and prefixes are sound.
            hop_counts: the `MinimalDelivery.hop_counts` that `prove_delivery` returned.
            kinds: the kinds of failures, `link`, `node` or both; () for no failures.

        Returns:
            The proof; None: it is not proved.
        """

    def prove_two_failures(self, build: Build) -> TwoFailures | None:
        """Prove that two failures lose no packets to some destinations, with bounds on the paths.

        Args:
            build: minimal delivery and the repair of single failures are proved.

        Returns:
            What is proved; None: nothing is.
        """

    def prove_module_failures(self, build: Build) -> ModuleBounds | None:
        """Prove that the failure of any one module loses no packet, with bounds on the paths.

        Args:
            build: minimal delivery is proved.

        Returns:
            The bounds; None: it is not proved.
        """


def first_result(call: Callable[[WholeFabricProof], Result | None]) -> Result | None:
    """The first result that is not None, of all proofs that packages registered.

    Args:
        call: calls a method of the proof that it is given, the same for every proof.
    """
    proofs = (load(entry) for entries in registered(PROOFS).values() for entry in entries)
    return next((result for proof in proofs if (result := call(proof)) is not None), None)
