"""Lossless Ethernet: channels and layers that were proved free of deadlock, as PFC priorities."""

ENTRY_POINTS = {
    "polarfab.additions": {
        "eos.lossless": "extensions.lossless.eos_lossless:EosLossless",
        "sonic.lossless": "extensions.lossless.sonic_lossless:SonicLossless",
    }
}
