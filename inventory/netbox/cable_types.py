"""Translate the types of cables of NetBox and Nautobot into the media of an inventory.

An import calls `media` with a type as NetBox stores it, `smf-os2`, or as its lists print it,
`Single-mode Fiber (OS2)`.
"""

from __future__ import annotations

import re
from typing import get_args

from inventory.floor import Media

LABELS = {
    "direct attach copper (active)": "dac-active",
    "direct attach copper (passive)": "dac-passive",
    "mrj21 trunk": "mrj21-trunk",
    "multimode fiber": "mmf",
    "single-mode fiber": "smf",
    "singlemode fiber": "smf",
    "active optical cabling (aoc)": "aoc",
}
"""The media of an inventory, by the labels that lists print."""
FIBRE = re.compile(r"(single-?mode|multimode) fiber \((os[12]|om[1-5])\)")
"""The label of a fibre: `single-mode fiber (os2)`."""
MEDIA: frozenset[str] = frozenset(get_args(Media))
"""The media of an inventory."""


def media(text: str) -> str | None:
    """The medium of an inventory for a type of cable; None for a type that carries no link."""
    word = text.lower()
    match = FIBRE.fullmatch(word)
    if match:
        word = f"{'mmf' if match[1] == 'multimode' else 'smf'}-{match[2]}"
    word = LABELS.get(word, word)
    return word if word in MEDIA else None
