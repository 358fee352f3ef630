"""The app for ryu-manager: `POLARFAB_BUILD=build python -m polarfab.controller.ryu_app`.

In a checkout its name is `controller.ryu_app`. This starts ryu-manager and takes its options;
`ryu-manager` itself does not start with eventlet 0.30.3 or newer.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

from controller.app import app_class
from controller.pulse import Pulse
from controller.reporter import Reporter
from controller.rollout.build_history import BuildHistory
from controller.rollout.move_journal import journalled
from controller.settings import AUDIT_PERIOD, Address, Tls
from controller.switches import framework
from controller.switches.connections import listening
from controller.switches.connections.file_limit import half_open_room
from controller.switches.connections.listening import Entrance, check_free
from controller.switches.connections.tls_files import TlsFiles
from controller.switches.current import Current, read_build
from controller.switches.session import LiveFabric
from controller.upkeep.background import in_thread
from controller.upkeep.repair_keeper import Keeper
from controller.upkeep.rolling_audit import RollingAudit
from inventory.problems import InputError

BUILD, UNVERIFIED, STATUS = "POLARFAB_BUILD", "POLARFAB_UNVERIFIED", "POLARFAB_STATUS_FILE"
ALONE = "POLARFAB_ALONE"
"""Set where no other app runs beside ours: what switches say is then not read for others."""
RYU = framework.load("ryu")
OPENFLOW_PORT = 6653
"""Where Ryu listens if nothing else is said."""
LOOK = 0.1
"""Seconds between two looks whether the loops still run."""


class PolarfabApp(app_class(RYU)):  # type: ignore[misc]
    """Takes the build from POLARFAB_BUILD, and the status file from POLARFAB_STATUS_FILE."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            reporter, keeper = _started()
            entrance = _entrance(reporter.fabric)
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)
        history = BuildHistory(_folder(), unverified=bool(os.environ.get(UNVERIFIED)))
        mover = journalled(reporter.fabric, keeper.foresee, history, keeper)
        others = not os.environ.get(ALONE)

        def reload() -> None:
            mover.load(_read(), by="SIGHUP")

        super().__init__(
            *args,
            reporter=reporter,
            reload=reload,
            entrance=entrance,
            pulse=Pulse(reporter.fabric.tell),
            others=others,
            **kwargs,
        )
        _hear_interrupts()
        reporter.fabric.expect()

    def start(self) -> None:
        """Start handling and reporting, and looking whether both go on."""
        super().start()
        RYU.hub.spawn(self._look)

    def _look(self) -> None:
        try:
            while True:
                self.pulse.look()
                RYU.hub.sleep(LOOK)
        except RuntimeError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            os._exit(1)  # ryu-manager would first wait for threads of other apps


def _hear_interrupts() -> None:
    """Make SIGINT end ryu-manager at any time: Ryu's threads swallow a KeyboardInterrupt."""
    from eventlet import getcurrent
    from eventlet.hubs import get_hub

    manager = getcurrent()

    def interrupt(*_: Any) -> None:
        get_hub().schedule_call_global(0, manager.throw, KeyboardInterrupt)

    signal.signal(signal.SIGINT, interrupt)


def _entrance(fabric: LiveFabric) -> Entrance | None:
    """Our listener, in place of Ryu's; None with TLS that asks switches for no certificate.

    Raises:
        InputError: too few open files, TLS files that cannot be used, or a port that is in use.
    """
    conf, room = RYU.conf, half_open_room(fabric.expected)
    secret = conf.ctl_privkey is not None and conf.ctl_cert is not None
    if not secret and (conf.ctl_privkey or conf.ctl_cert):
        raise InputError.of("both --ctl-privkey and --ctl-cert, or neither", "one of them")
    key = "--ofp-ssl-listen-port" if secret else "--ofp-tcp-listen-port"
    port = conf.ofp_ssl_listen_port if secret else conf.ofp_tcp_listen_port
    check_free(Address(conf.ofp_listen_host, port or OPENFLOW_PORT, key))
    if secret and conf.ca_certs is None:
        return None
    files = map(Path, (conf.ctl_privkey, conf.ctl_cert, conf.ca_certs)) if secret else ()
    entrance = Entrance(room, TlsFiles(Tls(*files)) if secret else None, fabric.rejected)
    listening.use(RYU, entrance)
    return entrance


def _folder() -> Path:
    """The build folder that the environment names."""
    return Path(os.environ.get(BUILD, "build"))


def _read() -> Current:
    """The build that the environment names."""
    return read_build(_folder(), unverified=bool(os.environ.get(UNVERIFIED)))


def _started() -> tuple[Reporter, Keeper]:
    """The reporter of the fabric that the environment names, started, and its keeper."""
    fabric, status = LiveFabric(_read(), RYU.error_names), os.environ.get(STATUS)
    keeper = Keeper(fabric, start=in_thread)
    RollingAudit(fabric, AUDIT_PERIOD, lambda: keeper.change)
    say = partial(print, flush=True)  # into a pipe or a journal, too
    reporter = Reporter(fabric, say, status_file=Path(status) if status else None)
    reporter.start("polarfab under ryu-manager")
    return reporter, keeper


def main() -> None:
    """ryu-manager with this app."""
    from ryu.cmd.manager import main as ryu_manager

    # Ours is named first, and as an option: other apps may stand before or behind options.
    ryu_manager(args=["--app-lists", "controller.ryu_app", *sys.argv[1:]], prog="ryu-manager")


if __name__ == "__main__":
    main()
