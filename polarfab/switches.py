"""Switches that run: what they hold, and how they come to hold a fabric, by controller or push."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from inventory.problems import InputError
from polarfab.fabric import Fabric

if TYPE_CHECKING:
    from compilers.audit.route_report import RouteReport
    from compilers.forwarding.walks import Progress
    from controller.devices.device_push import PushSettings
    from controller.devices.push_report import PushReport


def running(
    url: str, token_file: str | Path | None = None, authority: str | Path | None = None
) -> Fabric:
    """The fabric that a controller has.

    Args:
        url: of the controller's management API.
        token_file: its first line is a token that the controller accepts.
        authority: of the controller's certificate (PEM), for https.

    Raises:
        InputError: it does not answer, or refuses.

    Example:
        >>> import polarfab
        >>> fabric = polarfab.running("http://127.0.0.1:8080")  # doctest: +SKIP
    """
    from controller.rollout.build_archive import unpack
    from polarfab.controller_client import Client

    with TemporaryDirectory() as name:
        folder = Path(name) / "running"
        unpack(Client.to(url, "to", token_file, authority).ask("build"), folder)
        return Fabric.of(Fabric.load(folder).build)


def apply(
    fabric: Fabric,
    url: str,
    token_file: str | Path | None = None,
    authority: str | Path | None = None,
    *,
    accept_loss: bool = False,
    unverified: bool = False,
    progress: Progress | None = None,
    confirm_within: int = 0,
) -> dict[str, Any]:
    """Have a controller move its fabric to this one; returns how the move ended.

    Args:
        fabric: verified, or in memory.
        url: of the controller's management API.
        token_file: its first line is a token that the controller accepts.
        authority: of the controller's certificate (PEM), for https.
        accept_loss: go on although pairs of hosts lose packets.
        unverified: take tables that verification has not passed on.
        progress: called with (rounds done, all rounds).
        confirm_within: seconds in which the move has to be confirmed, or the fabric goes back;
            0: it stays.

    Raises:
        InputError: it does not answer, or refuses.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> polarfab.apply(fabric, "http://127.0.0.1:8080", "tokens")["state"]  # doctest: +SKIP
        'done'
    """
    from controller.rollout.build_archive import pack
    from polarfab.controller_client import Client

    with fabric.usable(unverified) as kept:
        client = Client.to(url, "to", token_file, authority)
        packed = pack(kept.folders[0])
        return client.apply(packed, accept_loss, unverified, progress, confirm_within)


def check_routes(
    fabric: Fabric,
    files: Iterable[str | Path],
    target: str = "",
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> RouteReport:
    """Compare the routing tables of switches with the tables.

    Args:
        fabric: compiled, or it is compiled now.
        files: named by their switches, and folders of them.
        target: that configured the switches; "" where the form of the files tells.
        options: those that it was rendered with.
        progress: called with (switches done, all switches).

    Raises:
        InputError: a file cannot be read or names no switch, or the target has no routes.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> polarfab.check_routes(fabric, ["routes/"], "frr").good  # doctest: +SKIP
        True
    """
    from compilers.audit.route_report import RouteReport

    return RouteReport.of(fabric.build, map(Path, files), target, options, progress)


def push(
    fabric: Fabric,
    target: str,
    settings: PushSettings,
    options: Mapping[str, str] | None = None,
    nodes: Sequence[str] = (),
    unverified: bool = False,
    progress: Progress | None = None,
    old: Fabric | None = None,
) -> PushReport:
    """Have routers hold a fabric's routes: add, take away, prove from their tables, save.

    Args:
        fabric: verified, or in memory.
        target: a system whose devices a push can reach; "": that of each switch.
        settings: how they are reached, how many at a time, whether only to look.
        options: of the target, as for `render`.
        nodes: only these switches.
        unverified: take tables that verification has not passed on.
        progress: called with (rounds on a switch done, all rounds), from several threads.
        old: what the routers hold: go in the rounds of `plan`, all of them each.

    Raises:
        InputError: there is no such target or switch, ssh would take the name of one for
            another address, verification has not passed, or there are no rounds.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> from controller.devices.device_push import PushSettings
        >>> polarfab.push(fabric, "frr", PushSettings(dry=True)).good  # doctest: +SKIP
        True
    """
    from compilers.targets.node_systems import builds_for
    from compilers.targets.rendering.plane_rendering import PlaneRendering
    from controller.devices.device_push import DevicePush

    with fabric.usable(unverified) as kept, TemporaryDirectory() as folder:
        (build,) = builds_for([kept.build], target)
        out, before = Path(folder) / "new", None
        with _named(fabric):
            PlaneRendering((build,), target, None, options, nodes).into(out)
        if old:
            (earlier,) = builds_for([old.build], target)
            before = earlier, Path(folder) / "old"
            with _named(old):
                PlaneRendering((before[0],), target, None, options).into(before[1])
        return DevicePush(build, target, options or {}, out, settings, progress, before).run(nodes)


@contextmanager
def _named(fabric: Fabric) -> Iterator[None]:
    """Problems with the policy within are this fabric's: they begin with its folder."""
    try:
        yield
    except InputError as error:
        place = str(fabric.folder or "")
        if not place or any(not problem.key.startswith("routing.") for problem in error.problems):
            raise
        raise InputError(replace(problem, file=place) for problem in error.problems) from None
