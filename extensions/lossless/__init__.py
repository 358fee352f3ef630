"""Lossless Ethernet: channels and layers that were proved free of deadlock, as PFC priorities.

Targets eos and sonic have them; that of sonic is refined once more by `extensions.host_paths`.
"""

ENTRY_POINTS = {"polarfab.targets": {"eos": "extensions.lossless.eos_lossless:LosslessEos"}}
