"""The values that some arguments of the library accept, as types of literals.

The command line offers the same values as choices of its options.
"""

from __future__ import annotations

from typing import Literal

Method = Literal["auto", "walk", "local"]
"""How `verify` proves a build."""
PictureForm = Literal["svg", "html"]
"""The form of a picture."""
Chart = Literal["racks", "load", "failures", "rounds"]
"""What a chart shows."""
EngineName = Literal["auto", "mininet", "ovs-fabric", "linux", "frr", "model"]
"""What a rehearsal runs on."""
FrameworkName = Literal["ryu", "os-ken"]
"""The OpenFlow framework that the controller runs on."""
