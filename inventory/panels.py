"""The model of `panels` in an inventory: passive cassettes between racks, joined by trunks.

`compilers.cabling.panel_plan` plans cassettes and trunks by it. A trunk is a cable of many fibres.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from inventory.problems import did_you_mean
from inventory.values import LongLine, Model, refusal

SINGLE = "single"
"""The name of a trunk that is a separate cable for each link."""
TRUNK_FIBRES = {"mpo8": 8, "mpo12": 12, "mpo16": 16, "mpo24": 24}
"""The number of fibres of each trunk, by name."""


def _trunk_names(text: str) -> str:
    """Check the names of trunks in a text; return them with single blanks between them."""
    trunk_names = (SINGLE, *TRUNK_FIBRES)
    for word in text.split() or [text]:
        if word not in trunk_names:
            todo = did_you_mean(word, trunk_names, "several are in one text: mpo12 mpo24")
            raise refusal(f"names of {', '.join(trunk_names)}", todo)
    return " ".join(text.split())


Trunks = Annotated[LongLine, AfterValidator(_trunk_names)]
"""The names of one or several trunks, with blanks between them."""


class Panels(Model):
    """Cassettes that the links of each cluster run through.

    Every switch has a ribbon to its own front port, a lane for each of its links in the order of
    their ports. Behind are trunks to the cassettes of other clusters.
    """

    trunk: Trunks = "mpo24"
    """The trunk: one name, or several in one text. If there are several, polarfab takes the trunk
    that needs the fewest types of cassettes, and among equals the fewest trunks.
    """
