"""Lossless Ethernet: channels and layers that were proved free of deadlock, as PFC priorities.

`priorities` plans which priority each channel or layer has. `eos_lossless` and `sonic_lossless` add
the configuration to their targets, and `eos_priorities` and `sonic_priorities` check it.
"""

ENTRY_POINTS = {
    "polarfab.additions": {
        "eos.lossless": "extensions.lossless.eos_lossless:EosLossless",
        "sonic.lossless": "extensions.lossless.sonic_lossless:SonicLossless",
    }
}
