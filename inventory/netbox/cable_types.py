"""Types of cables in the words of NetBox and Nautobot, as values and as their lists print them."""

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
FIBRE = re.compile(r"(single-?mode|multimode) fiber \((os[12]|om[1-5])\)")
MEDIA: frozenset[str] = frozenset(get_args(Media))


def media(text: str) -> str | None:
    """The word of an inventory for a type of cable; None for one that carries no link."""
    word = text.lower()
    if match := FIBRE.fullmatch(word):
        word = f"{'mmf' if match[1] == 'multimode' else 'smf'}-{match[2]}"
    word = LABELS.get(word, word)
    return word if word in MEDIA else None
