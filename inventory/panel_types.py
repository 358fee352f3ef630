"""Passive panels as values: the trunk between cassettes, and types of cassettes in stock."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from inventory.values import NAMED, Line, Model, Name, Place, refusal

TRUNK_FIBRES = {"mpo8": 8, "mpo12": 12, "mpo16": 16, "mpo24": 24}
"""The library of trunks: fibres by name."""
Trunk = Literal["mpo8", "mpo12", "mpo16", "mpo24"]
LANE = re.compile(r"([TF])([1-9][0-9]{0,3})\.([1-9][0-9]{0,3})|-")


def _lanes(text: str) -> str:
    for word in text.split():
        if not LANE.fullmatch(word):
            required = f"T1.2 (trunk 1, position 2), F1.2 (front 1, lane 2) or -, not {word[:40]}"
            raise refusal(required, "one word for each lane of the front port")
    return " ".join(text.split())


Lanes = Annotated[Place, AfterValidator(_lanes)]


class CassetteType(Model):
    """A fixed shuffle: a text for each port in front, a word in it for each lane.

    `T1.2` leads to position 2 of the trunk port 1 behind, `F1.2` to lane 2 of the front port 1,
    which leads back; `-` is dark. A lane and a position are one link's fibres.
    """

    front: Annotated[tuple[Lanes, ...], Field(min_length=1)]
    part_number: Line | None = None

    def fault(self) -> tuple[str, str] | None:
        """What is required and given, where lanes share a position or do not lead back."""
        rows = [text.split() for text in self.front]
        seen: set[str] = set()
        for f, row in enumerate(rows, 1):
            for k, word in enumerate(row, 1):
                if word[0] == "T" and word in seen:
                    return "a position of a trunk for one lane", f"{word} twice"
                seen.add(word)
                if word[0] == "F":
                    g, n = map(int, word[1:].split("."))
                    there = rows[g - 1][n - 1] if g <= len(rows) and n <= len(rows[g - 1]) else "-"
                    if there != f"F{f}.{k}" or (g, n) == (f, k):
                        return f"F{f}.{k} at lane {n} of front port {g}", there
        return None


class Panels(Model):
    """Cassettes that the links of each cluster run through.

    Every switch has a ribbon to its own front port, a lane for each of its links in the order of
    their ports. Behind are trunks to the cassettes of other clusters. With `types`, each cassette
    is one of them; without, `polarfab cables BUILD --format cassettes` says which are needed.
    """

    trunk: Trunk = "mpo24"
    types: dict[Name, CassetteType] = Field(default_factory=dict, json_schema_extra=NAMED)
