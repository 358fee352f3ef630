"""Restarts the controller's process, as a leader does whose lease has ended.

The new process reads the build, the certificates and the tokens anew. A file with a mistake does
not end it, as it would end a controller that somebody starts (`polarfab controller`): the old
process went on with the files of before.
"""

from __future__ import annotations

import os
import signal
import sys
from time import sleep
from typing import NoReturn

from controller.watchdog import notifier

_VARIABLE = "POLARFAB_CONTROLLER_RESTARTED"
"""The environment variable that a process has which was started by `restart`."""
RETRY = 10.0
"""Seconds until a restarted process that could not start tries again."""


def restart() -> NoReturn:
    """Replace this process by a new one with the same command."""
    os.environ[_VARIABLE] = "1"
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the new process listens to it
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the command of this process


def was_restarted() -> bool:
    """Whether this process was started by `restart`."""
    return _VARIABLE in os.environ


def restart_later() -> NoReturn:
    """Restart after `RETRY` seconds, unless a signal ends the process before."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    notifier(os.environ)("WATCHDOG=1")  # systemd's watchdog waits for 30 s
    sleep(RETRY)
    restart()
