"""The app, one for Ryu and os-ken: hands what happens to the session and sends what it answers."""

from __future__ import annotations

from typing import Any

from controller.framework import Framework
from controller.report import Reporter
from controller.session import Fabric

CHUNK = 16 * 1024
"""Bytes sent at once. At most 16 chunks wait in a switch's queue, and an echo reply behind them."""
TICK = 0.25
"""Seconds between two reports."""


def app_class(framework: Framework) -> Any:
    """The app as a class of the framework's: `App(fabric=…, reporter=…)`."""
    seen, on = framework.ofp_event, framework.handler.set_ev_cls
    config, main = framework.handler.CONFIG_DISPATCHER, framework.handler.MAIN_DISPATCHER
    dead, hub = framework.handler.DEAD_DISPATCHER, framework.hub

    class Tick(framework.event.EventBase):  # type: ignore[misc, name-defined]
        """Time to report. An event, so that one thread does all: the app's own."""

    class App(framework.app):  # type: ignore[misc, name-defined]
        """Programs the switches of one build."""

        OFP_VERSIONS = (framework.ofproto.OFP_VERSION,)

        def __init__(self, *args: Any, fabric: Fabric, reporter: Reporter, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.fabric, self.reporter = fabric, reporter
            self.register_handler(Tick, self.on_tick)

        def start(self) -> None:
            """Begin to report."""
            super().start()
            framework.drop_error_log()
            self.threads.append(hub.spawn(self._ticks))

        @on(seen.EventOFPStateChange, [main, dead])
        def on_state(self, event: Any) -> None:
            """A switch has named itself, or a connection has ended."""
            datapath = event.datapath
            if event.state == main:
                host, port = datapath.address[:2]
                program = self.fabric.connected(datapath, datapath.id, f"{host}:{port}")
                self._send(datapath, program)
            elif datapath.id is None:
                self.fabric.stranger(str(datapath.address[0]))
            else:
                self.fabric.closed(datapath)

        @on(seen.EventOFPErrorMsg, [config, main])
        @on(seen.EventOFPBarrierReply, main)
        @on(seen.EventOFPExperimenter, main)
        @on(seen.EventONFBundleCtrlMsg, main)
        def on_message(self, event: Any) -> None:
            """A switch has answered."""
            message = event.msg
            self._send(message.datapath, self.fabric.received(message.datapath, bytes(message.buf)))

        def on_tick(self, _: Tick) -> None:
            """Report, and ask connections that others have taken the place of."""
            for datapath, question in self.fabric.probes():
                self._send(datapath, question)
            self.reporter.tick()

        def _send(self, datapath: Any, data: bytes) -> None:
            if data:
                hub.spawn(_in_chunks, datapath, data)

        def _ticks(self) -> None:
            while self.is_active:
                self.send_event(self.name, Tick())
                hub.sleep(TICK)

    return App


def _in_chunks(datapath: Any, data: bytes) -> None:
    """Send piece by piece: waits where the switch reads slowly, gives up where it has left."""
    for start in range(0, len(data), CHUNK):
        if not datapath.send(data[start : start + CHUNK]):
            return
