"""The words that arguments of the library choose from."""

from __future__ import annotations

from typing import Literal

Method = Literal["auto", "walk", "local"]
"""How `verify` proves."""
PictureForm = Literal["svg", "html"]
Chart = Literal["racks", "load", "failures", "rounds"]
EngineName = Literal["auto", "mininet", "ovs-fabric", "linux", "frr", "model"]
FrameworkName = Literal["ryu", "os-ken"]
