"""Passive panels as values: the trunk between them, and types of cassettes and patch panels."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from inventory.problems import did_you_mean
from inventory.values import NAMED, Line, Model, Name, Place, refusal

SINGLE = "single"
"""The trunk that is a cable of its own for each link."""
TRUNK_FIBRES = {"mpo8": 8, "mpo12": 12, "mpo16": 16, "mpo24": 24}
"""The library of trunks: fibres by name."""
PATCH_PORTS = {"patch-24": 24, "patch-48": 48, "patch-96": 96, "patch-144": 144}
"""The library of patch panels: ports in front by name."""
LANE = re.compile(r"([TF])([1-9][0-9]{0,3})\.([1-9][0-9]{0,3})|-")


def _lanes(text: str) -> str:
    for word in text.split():
        if not LANE.fullmatch(word):
            required = f"T1.2 (trunk 1, position 2), F1.2 (front 1, lane 2) or -, not {word[:40]}"
            raise refusal(required, "one word for each lane of the front port")
    return " ".join(text.split())


def _trunks(text: str) -> str:
    known = (SINGLE, *TRUNK_FIBRES)
    for word in text.split() or [text]:
        if word not in known:
            todo = did_you_mean(word, known, "several are in one text: mpo12 mpo24")
            raise refusal(f"names of {', '.join(known)}", todo)
    return " ".join(text.split())


Trunks = Annotated[Place, AfterValidator(_trunks)]
Lanes = Annotated[Place, AfterValidator(_lanes)]


def straight_through(ports: int, room: int) -> tuple[str, ...]:
    """The front ports of a patch panel: one lane each, to the next position of trunks of `room`."""
    each = min(ports, room)
    words = (f"T{i // each + 1}.{i % each + 1}" for i in range(ports // each * each))
    return (*words, *("-" for _ in range(ports % each)))


class CassetteType(Model):
    """A fixed shuffle: a text for each port in front, a word in it for each lane.

    `T1.2` leads to position 2 of the trunk port 1 behind, `F1.2` to lane 2 of the front port 1,
    which leads back; `-` is dark. A lane and a position are one link's fibres. A patch panel has
    one lane at each port in front.
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
    """Cassettes that the links of each cluster run through, or patch panels of each rack.

    Every switch has a ribbon to its own front port, a lane for each of its links in the order of
    their ports. Behind are trunks to the cassettes of other clusters. `trunk` has one name, or
    several in one text: that with the fewest trunks is taken. With `types`, each cassette is one of
    these, as few as serve; without, `polarfab cables BUILD --format cassettes` says which are
    needed.

    With `patch`, a name of the library or of `types`, every link to another rack has a cord to a
    port of its own at a patch panel of that type, and so at its other end.
    """

    trunk: Trunks = "mpo24"
    patch: Name | None = None
    types: dict[Name, CassetteType] = Field(default_factory=dict, json_schema_extra=NAMED)

    def patch_fault(self) -> tuple[str, str] | None:
        """What is required of the type that `patch` names, and given."""
        if self.patch is None or (self.patch in PATCH_PORTS and self.patch not in self.types):
            return None
        if self.patch not in self.types:
            return f"a type of panels.types, or {', '.join(PATCH_PORTS)}", self.patch
        front = self.types[self.patch].front
        if wrong := [text for text in front if " " in text or text[0] == "F"]:
            return "one lane at each port in front of a patch panel, such as T1.1", wrong[0]
        taken = [tuple(map(int, text[1:].split("."))) for text in front if text != "-"]
        trunks, places = (len({place[i] for place in taken}) for i in (0, 1))
        whole = {(t, k) for t in range(1, trunks + 1) for k in range(1, places + 1)}
        if not taken or {*taken} != whole:
            return "T1.1, T1.2, … and as many positions of each trunk port", front[0]
        return None
