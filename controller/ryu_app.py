"""The app for ryu-manager: `POLARFAB_BUILD=build python -m polarfab.controller.ryu_app`.

In a checkout its name is `controller.ryu_app`. This starts ryu-manager and takes its options;
`ryu-manager` itself does not start with eventlet 0.30.3 or newer.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from controller.app import app_class
from controller.reporter import Reporter
from controller.rollout.build_history import BuildHistory
from controller.rollout.move_journal import journalled
from controller.settings import AUDIT_PERIOD
from controller.switches import framework
from controller.switches.current import Current, read_build
from controller.switches.file_limit import half_open_room
from controller.switches.session import LiveFabric
from controller.upkeep.repair_keeper import Keeper
from controller.upkeep.rolling_audit import RollingAudit
from inventory.problems import InputError

BUILD, UNVERIFIED, STATUS = "POLARFAB_BUILD", "POLARFAB_UNVERIFIED", "POLARFAB_STATUS_FILE"
ALONE = "POLARFAB_ALONE"
"""Set where no other app runs beside ours: what switches say is then not read for others."""
RYU = framework.load("ryu")


class PolarfabApp(app_class(RYU)):  # type: ignore[misc]
    """Takes the build from POLARFAB_BUILD, and the status file from POLARFAB_STATUS_FILE."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            reporter, keeper = _started()
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)
        history = BuildHistory(_folder(), unverified=bool(os.environ.get(UNVERIFIED)))
        mover = journalled(reporter.fabric, keeper.foresee, history)
        others = not os.environ.get(ALONE)

        def reload() -> None:
            mover.load(_read(), by="SIGHUP")

        super().__init__(*args, reporter=reporter, reload=reload, others=others, **kwargs)
        _hear_interrupts()


def _hear_interrupts() -> None:
    """Make SIGINT end ryu-manager at any time: Ryu's threads swallow a KeyboardInterrupt."""
    from eventlet import getcurrent
    from eventlet.hubs import get_hub

    manager = getcurrent()

    def interrupt(*_: Any) -> None:
        get_hub().schedule_call_global(0, manager.throw, KeyboardInterrupt)

    signal.signal(signal.SIGINT, interrupt)


def _folder() -> Path:
    """The build folder that the environment names."""
    return Path(os.environ.get(BUILD, "build"))


def _read() -> Current:
    """The build that the environment names."""
    return read_build(_folder(), unverified=bool(os.environ.get(UNVERIFIED)))


def _started() -> tuple[Reporter, Keeper]:
    """The reporter of the fabric that the environment names, started, and its keeper."""
    fabric, status = LiveFabric(_read(), RYU.error_names), os.environ.get(STATUS)
    half_open_room(fabric.expected)
    keeper = Keeper(fabric)
    RollingAudit(fabric, AUDIT_PERIOD, lambda: keeper.change)
    reporter = Reporter(fabric, print, status_file=Path(status) if status else None)
    reporter.start("polarfab under ryu-manager")
    return reporter, keeper


def main() -> None:
    """ryu-manager with this app."""
    from ryu.cmd.manager import main as ryu_manager

    ryu_manager(args=[*sys.argv[1:], "controller.ryu_app"], prog="ryu-manager")


if __name__ == "__main__":
    main()
