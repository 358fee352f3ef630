"""The limit of open files: a connection is one, so it bounds the switches that may connect."""

from __future__ import annotations

import resource

from inventory.problems import InputError

OTHER_FILES = 128
"""Open files besides connections of switches: HTTP clients, the store, logs, what Python opens."""
LEAST_HALF_OPEN, MOST_HALF_OPEN = 64, 1024
"""Half-open connections beyond one for each switch."""


def half_open_room(switches: int) -> int:
    """Raise the limit of open files as far as it goes; returns the room for half-open connections.

    Every switch has room for two connections: one that is dead and one with which it returns.

    Raises:
        InputError: the hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * switches + OTHER_FILES + LEAST_HALF_OPEN
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InputError.of(
            required=f"at least {needed:,} open files for {switches:,} switches",
            given=f"a hard limit of {hard:,}",
            todo=f"start it with: ulimit -Hn {needed}; or LimitNOFILE={needed} in systemd's unit",
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY:
        return switches + MOST_HALF_OPEN
    return min(switches + MOST_HALF_OPEN, hard - switches - OTHER_FILES)
