"""The proved properties of a build, as the file `verified.json` in its folder lists them.

`verify` writes this file, the *mark* of a build folder. Verbs that use a build read it as a
`Proved`. They also say which promises of the policy are not proved (`caveat`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compilers.proof.failures.risk_cases import kind_words
from compilers.spec.policy import PROTECTED_FAILURES
from compilers.tables.build import Build
from compilers.tables.folders.verified_mark import verification_mark


@dataclass(frozen=True, slots=True)
class Proved:
    """The proved properties of a build."""

    delivery: bool = False
    """Whether every pair of switches is delivered over a minimal path."""
    identities: bool = False
    """Whether names, ids and addresses are unique, and both ends of every cable agree."""
    alternates: bool = False
    """Whether packets arrive over every alternate."""
    failures: tuple[str, ...] = ()
    """The kinds of failures that lose no pair that is still joined."""
    channels: bool = False
    """Whether virtual channels keep a lossless fabric free of deadlock, also while packets take a
    repair that the policy promises."""
    certified: tuple[str, ...] = ()
    """The properties and kinds of failures that were proved by the local proof, which looks at each
    state of a packet once. All others were proved by walks, which follow packets."""
    promised: tuple[str, ...] = ()
    """The kinds of failures that the policy promises to survive."""

    @classmethod
    def read(cls, folder: Path, build: Build) -> Proved:
        """The properties in the mark of a build's folder.

        Nothing is proved if the folder has no mark, or if the mark is for another build.

        Args:
            folder: of the build.
            build: says what the policy promises.
        """
        promised = PROTECTED_FAILURES.get(build.forwarding.protect, ())
        try:
            mark = verification_mark(folder)
            if mark.get("build") != build.identity:
                return cls(promised=promised)
            return cls.of(mark["proved"], promised)
        except (KeyError, TypeError, AttributeError):
            return cls(promised=promised)

    @classmethod
    def of(cls, facts: Mapping[str, Any], promised: tuple[str, ...]) -> Proved:
        """The properties that `Report.proved` lists.

        Args:
            facts: the fields of `Proved` but `promised`, perhaps read from JSON, with lists in
                place of tuples.
            promised: the kinds of failures that the policy promises to survive.
        """
        read = cls(**facts)
        return replace(
            read,
            failures=tuple(read.failures),
            certified=tuple(read.certified),
            promised=promised,
        )

    def __str__(self) -> str:
        """A list such as `delivery, identities, link failures`; "nothing" if nothing is proved."""
        properties = ("delivery", "identities", "alternates", "channels")
        proved = [name for name in properties if getattr(self, name)]
        return ", ".join([*proved, *(kind_words(kind) for kind in self.failures)]) or "nothing"

    @property
    def methods(self) -> dict[str, str]:
        """How each property was proved: `local proof` or `walk`."""
        proved = [name for name in ("delivery", "alternates") if getattr(self, name)]
        return {
            name: "local proof" if name in self.certified else "walk"
            for name in (*proved, *self.failures)
        }

    @property
    def caveat(self) -> str:
        """The promised failures that are not proved: `delivery proved; link failures not walked`.

        "" if all promised failures are proved, or if not even delivery is proved.
        """
        unproved = [kind_words(kind) for kind in self.promised if kind not in self.failures]
        if not self.delivery or not unproved:
            return ""
        return f"delivery proved; {' and '.join(unproved)} not walked"
