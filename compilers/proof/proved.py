"""The proved properties of a build, as its mark lists them: walks, identities, failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilers.proof.failures.risk_cases import kind_words
from compilers.spec.policy import PROMISED
from compilers.tables.build import Build
from compilers.tables.folders.generations import marked


@dataclass(frozen=True, slots=True)
class Proved:
    """What holds of a build that passed."""

    delivery: bool = False
    """Every pair over a minimal path."""
    identities: bool = False
    """Names, ids and addresses are unique, and every port is cabled as it says."""
    alternates: bool = False
    """Over every alternate, too."""
    failures: tuple[str, ...] = ()
    """Kinds that lose no pair that is still joined."""
    channels: bool = False
    """A lossless fabric does not deadlock, nor while packets take a repair that the policy
    promises."""
    certified: tuple[str, ...] = ()
    """Of `alternates` and failures, those proved state by state, not by walks."""
    promised: tuple[str, ...] = ()
    """The failures that the policy promises to survive."""

    @classmethod
    def read(cls, folder: Path, build: Build) -> Proved:
        """What the mark of a build in a folder says; nothing where it has none."""
        promised = PROMISED.get(build.forwarding.protect, ())
        try:
            mark = marked(folder)
            if mark.get("build") != build.identity:
                return cls(promised=promised)
            return cls.of(mark["proved"], promised)
        except (KeyError, TypeError, AttributeError):
            return cls(promised=promised)

    @classmethod
    def of(cls, facts: Mapping[str, Any], promised: tuple[str, ...]) -> Proved:
        """From `Report.proved`."""
        lists = {word: tuple(facts.get(word, ())) for word in ("failures", "certified")}
        return cls(**{**facts, **lists, "promised": promised})

    def __str__(self) -> str:
        """`delivery, identities, alternates, link failures`; "nothing" where nothing was."""
        words = [
            w for w in ("delivery", "identities", "alternates", "channels") if getattr(self, w)
        ]
        return ", ".join([*words, *(kind_words(kind) for kind in self.failures)]) or "nothing"

    @property
    def methods(self) -> dict[str, str]:
        """`local proof` or `walk`, by what was proved: paths, kinds of failures."""
        proved = [word for word in ("delivery", "alternates") if getattr(self, word)]
        methods = {True: "local proof", False: "walk"}
        return {word: methods[word in self.certified] for word in (*proved, *self.failures)}

    @property
    def caveat(self) -> str:
        """What the policy promises and was not proved: `delivery proved; link failures not walked`.

        "" where all was proved, and where nothing was.
        """
        left = [kind_words(kind) for kind in self.promised if kind not in self.failures]
        if not self.delivery or not left:
            return ""
        return f"delivery proved; {' and '.join(left)} not walked"
