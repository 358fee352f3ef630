"""Provenance of a run: when, on which machine, by which version."""

from __future__ import annotations

import os
import platform
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from socket import gethostname


def provenance() -> dict[str, str]:
    """The time now with its zone, the version of polarfab, and the host with its system."""
    try:
        ours = version("polarfab")
    except PackageNotFoundError:  # a checkout that nobody has installed
        ours = "of a checkout"
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    return {
        "at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "version": ours,
        "host": f"{gethostname()}, {system}, {cores} core{'s' * (cores != 1)}",
    }
