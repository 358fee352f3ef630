"""`polarfab controller`: runs the OpenFlow controller for a build."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING

import click

from controller import API
from inventory.problems import InputError
from polarfab.output.verb_output import say
from polarfab.output.verification_output import say_caveats
from polarfab.shared_options import shared

if TYPE_CHECKING:
    from controller.settings import Settings

FILE = click.Path(path_type=Path, dir_okay=False)
"""The type of an option that names a file."""


@click.command("controller")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@shared("--framework", meaning="Ryu when both are installed")
@click.option(
    "--listen", default="127.0.0.1:6653", metavar="HOST:PORT", help="Where switches connect to."
)
@click.option(
    "--tls-key",
    type=FILE,
    help="The controller's key; with --tls-cert and --tls-ca, switches need TLS.",
)
@click.option("--tls-cert", type=FILE, help="The controller's certificate (PEM).")
@click.option("--tls-ca", type=FILE, help="The authority that signs switches' certificates (PEM).")
@click.option(
    "--tls-crl", type=FILE, help="Revocation lists of that authority (PEM); followed as it changes."
)
@click.option(
    "--tls-names",
    default="{node}",
    metavar="PATTERN",
    help="What a switch's certificate calls the node {node}.",
)
@click.option(
    "--insecure", is_flag=True, help="Listen in plain text beyond loopback: anyone can be a switch."
)
@click.option(
    "--foreign",
    type=click.Choice(["keep", "remove"]),
    default="keep",
    help="What becomes of flows and groups of others in a switch.",
)
@click.option(
    "--audit",
    default=300.0,
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Read every switch once in so many seconds and correct what has drifted; 0: never.",
)
@click.option(
    "--http",
    metavar="HOST:PORT|none",
    help=f"Status page, management API, metrics; without tokens to read only.  [default: {API}]",
)
@click.option(
    "--http-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name by which clients reach the API; addresses, localhost and HOST need none.",
)
@shared("--token-file", meaning="who has one may change things by the API")
@click.option(
    "--token-to-read",
    is_flag=True,
    help="Show state and metrics only to those with a token; the health check stays open to all.",
)
@click.option(
    "--status-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep the state of the fabric in this file, as JSON.",
)
@click.option(
    "--repair/--no-repair",
    default=True,
    help="Change tables where links and switches fail, and back.",
)
@click.option(
    "--discover/--no-discover",
    default=None,
    help="Find cables with LLDP frames: dead links, miswires."
    "  [default: where tables change, without --app]",
)
@click.option(
    "--damping",
    default="15,2200,1000,60",
    metavar="HALF-LIFE,SUPPRESS,REUSE,LONGEST",
    help="How long traffic avoids a flapping link: each time down adds 1,000 to its penalty, which"
    " halves in HALF-LIFE seconds; it is avoided above SUPPRESS, until the penalty is below REUSE,"
    " for at most LONGEST seconds.",
)
@click.option(
    "--patience",
    default=5.0,
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="How long a switch may be gone before traffic goes around it.",
)
@click.option(
    "--arrival",
    default=30.0,
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="When a switch that has not connected since the start counts as gone.",
)
@shared("--unverified", meaning="its tables may lose packets or loop")
@click.option(
    "--store",
    metavar="URL,…",
    help="etcd, where several controllers of a fabric agree on a leader; one alone needs none.",
)
@shared("--name", meaning="what the others call this controller  [default: the host's]")
@click.option(
    "--app",
    "apps",
    multiple=True,
    metavar="'MODULE [OPTION…]'",
    help="Run this app of Ryu or os-ken, too, in the same process.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines; an event a line.")
def command(
    folder: Path,
    framework: str | None,
    listen: str,
    tls_key: Path | None,
    tls_cert: Path | None,
    tls_ca: Path | None,
    tls_crl: Path | None,
    tls_names: str,
    insecure: bool,
    foreign: str,
    audit: float,
    http: str | None,
    hosts: tuple[str, ...],
    token_file: Path | None,
    token_to_read: bool,
    status_file: Path | None,
    repair: bool,
    discover: bool | None,
    damping: str,
    patience: float,
    arrival: float,
    unverified: bool,
    store: str | None,
    name: str | None,
    apps: tuple[str, ...],
    as_json: bool,
) -> None:
    """Give every switch of BUILD its program when it connects, until SIGINT or SIGTERM.

    Switches speak OpenFlow 1.3 to us (ovs-vsctl set-controller BRIDGE tcp:127.0.0.1:6653, with
    fail_mode=secure and other-config:disable-in-band=true). A switch is read first and gets only
    what differs, atomically: one that refuses keeps what it had and is reported. A datapath id that
    is not in the build gets nothing. SIGHUP reads BUILD again.
    """
    from controller.restart import RETRY, restart_later, was_restarted
    from controller.settings import Address, Damping, Duties, Settings, StoreGroup, Tls

    if discover is None:
        discover = repair and not apps  # other apps may send LLDP of their own
    settings = Settings(
        listen=Address.parse(listen, "--listen"),
        tls=Tls.of(tls_key, tls_cert, tls_ca, tls_crl, tls_names),
        insecure=insecure,
        http=None if http == "none" else Address.parse(http or API, "--http"),
        http_needed=bool(http),
        hosts=hosts,
        tokens=token_file,
        token_to_read=token_to_read,
        foreign="remove" if foreign == "remove" else "keep",
        status_file=status_file,
        as_json=as_json,
        audit=audit,
        duties=Duties(
            repair=repair,
            discover=discover,
            patience=patience,
            arrival=arrival,
            damping=Damping.parse(damping, "--damping"),
        ),
        group=StoreGroup.parse(store, name or gethostname()) if store else None,
        unverified=unverified,
        apps=apps,
    )
    try:
        _serve(folder, framework, settings)
    except InputError as error:
        if not was_restarted():
            raise
        say(f"{error}; the controller, which has restarted itself, tries again in {RETRY:.0f} s")
        restart_later()


def _serve(folder: Path, framework: str | None, settings: Settings) -> None:
    """Run the controller of the build in a folder until it is ended."""
    from controller.app import serve
    from controller.printer import to_output
    from controller.rollout.build_history import BuildHistory
    from controller.rollout.resumption import restore_folder
    from controller.switches import framework as frameworks
    from polarfab.fabric import Fabric

    # While it starts, a SIGHUP asks for what it does anyway: to read the build.
    signal.signal(signal.SIGHUP, lambda *_: None)
    history = BuildHistory(folder, settings.unverified)
    try:
        fabric = Fabric.load(folder)
    except InputError:
        restored = restore_folder(history) if settings.group is None else ""
        if not restored:
            raise
        say(restored)
        fabric = Fabric.load(folder)
    if history.allows_unverified() and not all(proved.delivery for proved in fabric.proved):
        say(f"{folder} is unverified: it is not proved that its tables deliver every packet")
    else:
        say_caveats(fabric)

    def write(line: str) -> None:
        """Print a line, unless the reader of the output has ended."""
        with suppress(BrokenPipeError):
            to_output(line)

    chosen = frameworks.load(framework)
    serve(chosen, history.read_folder, settings, write, folder)
