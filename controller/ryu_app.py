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
from controller.composition import Controller
from controller.settings import Address, Duties, Settings, StoreGroup, Tls
from controller.switches import framework
from controller.switches.current import read_build
from inventory.problems import InputError

BUILD, UNVERIFIED, STATUS = "POLARFAB_BUILD", "POLARFAB_UNVERIFIED", "POLARFAB_STATUS_FILE"
HTTP, TOKENS, STORE, NAME = (f"POLARFAB_{word}" for word in ("HTTP", "TOKEN_FILE", "STORE", "NAME"))
ALONE = "POLARFAB_ALONE"
"""Set where no other app runs with ours: what switches say is then not read for others."""
RYU = framework.load("ryu")
OPENFLOW_PORT = 6653
"""Where Ryu listens if nothing else is said."""
LOOK = 0.1
"""Seconds between two looks whether the loops still run."""


class PolarfabApp(app_class(RYU)):  # type: ignore[misc]
    """Takes the build and what else it needs to know from the environment."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            controller = _controller()
            others = not os.environ.get(ALONE)
            super().__init__(*args, controller=controller, others=others, **kwargs)
            controller.begin()
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)
        _hear_interrupts(controller)

    def start(self) -> None:
        """Start handling and reporting, and looking whether both go on."""
        super().start()
        RYU.hub.spawn(self._look)

    def _look(self) -> None:
        try:
            while True:
                self.controller.pulse.look()
                RYU.hub.sleep(LOOK)
        except RuntimeError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            os._exit(1)  # ryu-manager would first wait for threads of other apps


def _hear_interrupts(controller: Controller) -> None:
    """Make SIGINT and SIGTERM end ryu-manager at any time, with our last line: Ryu's threads
    swallow a KeyboardInterrupt.
    """
    from eventlet import getcurrent
    from eventlet.hubs import get_hub

    manager = getcurrent()

    def interrupt(number: int, _: Any) -> None:
        get_hub().schedule_call_global(0, controller.end, signal.Signals(number).name)
        get_hub().schedule_call_global(0, manager.throw, KeyboardInterrupt)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


def _controller() -> Controller:
    """The controller that the environment and ryu-manager's options ask for."""
    conf, given = RYU.conf, os.environ.get
    files = [Path(one) for one in (conf.ctl_privkey, conf.ctl_cert, conf.ca_certs) if one]
    if len(files) not in (0, 3):
        required = "all of --ctl-privkey, --ctl-cert and --ca-certs, or none"
        raise InputError.of(required, f"{len(files)} of them")
    option = "ofp-ssl-listen-port" if files else "ofp-tcp-listen-port"
    name = option.replace("-", "_")
    port = conf[name] or OPENFLOW_PORT
    conf.set_override(name, port)  # without any Ryu would listen on its old port, too
    status, tokens, store, http = given(STATUS), given(TOKENS), given(STORE), given(HTTP)
    settings = Settings(
        listen=Address(conf.ofp_listen_host, port, f"--{option}"),
        tls=Tls(files[0], files[1], files[2]) if files else None,
        http=Address.parse(http, HTTP) if http else None,
        tokens=Path(tokens) if tokens else None,
        status_file=Path(status) if status else None,
        duties=Duties(discover=bool(given(ALONE))),  # other apps may have LLDP of their own
        group=StoreGroup.parse(store, given(NAME, "ryu")) if store else None,
        unverified=bool(given(UNVERIFIED)),
    )
    settings.check(listener=False)  # where Ryu listens is for its options to say
    folder = Path(given(BUILD, "build"))
    read = partial(read_build, folder, unverified=settings.unverified)
    say = partial(print, flush=True)  # into a pipe or a journal, too
    where = "polarfab under ryu-manager"
    return Controller(RYU, read, settings, say, folder, where)


def main() -> None:
    """ryu-manager with this app."""
    from ryu.cmd.manager import main as ryu_manager

    # Ours is named first, and as an option: other apps may come before or after options.
    ryu_manager(args=["--app-lists", "controller.ryu_app", *sys.argv[1:]], prog="ryu-manager")


if __name__ == "__main__":
    main()
