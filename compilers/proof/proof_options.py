"""What to prove of a build, and what helps to prove it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofOptions:
    """What `verify` is to prove besides delivery, and how."""

    failures: Sequence[str] | None = None
    """Kinds of failures to try (`compilers.proof.failures.risk_cases`); None: those that the
    policy promises to repair.
    """
    sample: int | None = None
    """The number of cases of several failures at once; None: all pairs where that is quick."""
    seed: int = 1
    """Of the sample, and of the destinations that are walked besides a certificate."""
    channels: bool | None = False
    """Whether to count channels and prove the fabric free of deadlock; None: if that is quick."""
    method: str = "auto"
    """One of `METHODS`, for minimal paths, all paths, and failures of one link or node, or of two
    in a whole PolarFly. What a certificate cannot judge is walked; `auto` takes a certificate
    where walks take long.
    """
    progress: Progress | None = None
    """Called with destinations done and all, in each of the walks."""
    workers: Workers = THIS_PROCESS
    """Processes that share the destinations of walks."""

    def require_valid(self) -> None:
        """Pass where there are such kinds of failures and such a method.

        Raises:
            InputError: there are not.
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
