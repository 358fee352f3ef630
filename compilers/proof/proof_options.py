"""The options of `verify`: what is to be proved of a build, by which method and processes.

The verbs and the library make a `ProofOptions`; `compilers.proof.verification` reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from compilers.choices import Method
from compilers.forwarding.walks import Progress
from compilers.proof.failures.risk_cases import require_kind
from compilers.workers.shards import THIS_PROCESS, Workers
from inventory.problems import InputError, shown

METHODS = get_args(Method)
"""The methods of proof: `auto`, `walk` and `local`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofOptions:
    """What `verify` is to prove besides delivery, and how."""

    failures: Sequence[str] | None = None
    """The kinds of failures to try (`compilers.proof.failures.risk_cases`); None: those that the
    policy promises to repair.
    """
    sample: int | None = None
    """The most cases of several failures at once that are tried; None: all pairs if that is quick,
    else 1000."""
    seed: int = 1
    """The seed of the sample, and of the destinations that are walked although they are proved."""
    channels: bool | None = False
    """Whether to count channels and prove the fabric free of deadlock; None: if that is quick."""
    method: str = "auto"
    """One of `METHODS`. `walk` follows all packets. `local` proves them state by state
    (`compilers.proof.local`), and walks what that leaves open. `auto` is `local` where a walk would
    take long.
    """
    progress: Progress | None = None
    """Called with destinations done and all, in each walk."""
    workers: Workers = THIS_PROCESS
    """The processes that share the destinations of a walk."""

    def require_valid(self) -> None:
        """Pass if the kinds of failures and the method exist.

        Raises:
            InputError: there is no such kind, or no such method.
        """
        for kind in self.failures or ():
            require_kind(kind)
        if self.method not in METHODS:
            required = "one of " + ", ".join(METHODS)
            raise InputError.of(required, shown(self.method), key="method")


WITHOUT_FAILURES = ProofOptions(failures=())
"""Delivery over every path that packets may take, with nothing failed."""
AS_PROMISED = ProofOptions()
"""Delivery, and the failures that the policy promises to repair."""
