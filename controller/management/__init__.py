"""The management API of a controller: HTTP, metrics, status page, tokens."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from controller.management.action_log import ActionLog
from controller.pulse import Pulse
from controller.reporter import Reporter
from controller.rollout.mover import Mover
from controller.settings import Address, Settings
from controller.switches.connections.tls_files import TlsFiles
from controller.switches.events import ApiOpened
from inventory.problems import InputError, install_extra

if TYPE_CHECKING:
    from controller.management.http_api import Api
    from controller.management.tokens import Tokens
    from controller.upkeep.repair_keeper import Keeper

NEEDED = ("werkzeug", "prometheus_client")


def opened(address: Address) -> Any:
    """A socket that listens for requests, before anything else is started.

    Raises:
        InputError: packages are missing, the port is in use, or it is no address of this machine.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise InputError.of(
            key=address.key,
            required="the packages of the management API",
            given=f"no {' and no '.join(missing)} installed",
            todo=install_extra("http"),
        )
    from controller.management.wsgi_server import listener

    return listener(address)


def start(
    listener: Any,
    settings: Settings,
    tokens: Tokens,
    reporter: Reporter,
    ports: Keeper,
    mover: Mover,
    actions: ActionLog,
    pulse: Pulse,
    tls: TlsFiles | None,
) -> Api:
    """Serve the API and the status page; returns the application.

    Args:
        listener: of `opened`.
        settings: the address for messages, and whether reading needs a token.
        tokens: the accepted ones.
        reporter: of the fabric; reports events.
        ports: state and load of links.
        mover: moves the fabric to other builds.
        actions: where requests are written down.
        pulse: which health follows, and which follows the server.
        tls: for https; None for plain text.
    """
    import eventlet

    from controller.management.http_api import Api
    from controller.management.metrics import Metrics
    from controller.management.overview import Overview
    from controller.management.tokens import Guesses
    from controller.management.wsgi_server import serve
    from controller.upkeep.port_counters import PortCounters

    overview, guesses = Overview(reporter.fabric, ports, pulse), Guesses(reporter.fabric.clock)
    metrics = Metrics(overview, guesses, PortCounters(reporter.fabric), tls)
    reporter.observers += [overview.happened, metrics.happened]
    private = settings.token_to_read
    api = Api(overview, metrics, tokens, actions, mover, guesses, private, eventlet.sleep)
    server = serve(listener, api, tls)
    pulse.follow("answering HTTP requests", server)
    url = f"http{'s' * bool(tls)}://{settings.http}"
    access = "changes need a token" if tokens.known else "to read only, without --token-file"
    if settings.token_to_read:
        access = "all but health needs a token"
    reporter.fabric.tell(ApiOpened(url, access))
    return api
