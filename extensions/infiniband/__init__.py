"""InfiniBand: what OpenSM needs to run a fabric, and the check of what was written."""

ENTRY_POINTS = {"polarfab.targets": {"opensm": "extensions.infiniband.opensm:Opensm"}}
