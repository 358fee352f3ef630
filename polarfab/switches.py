"""Functions of the library for running switches: read them, move them, push to them, check them.

`running` and `apply` ask a controller; `push` and `check_routes` work with configured routers.
"""

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

URL_KEY = "to"
"""The key of the controller's URL in the problems of a client."""


def running(
    url: str, token_file: str | Path | None = None, authority: str | Path | None = None
) -> Fabric:
    """The fabric that a controller runs.

    Args:
        url: the URL of the controller's management API.
        token_file: a file whose first line is a token of the role `read` or more. It is always
            needed, and a controller without tokens gives its build to nobody.
        authority: the authority of the controller's certificate (PEM), for https.

    Raises:
        InputError: the controller does not answer, or refuses.

    Example:
        >>> import polarfab
        >>> fabric = polarfab.running("http://127.0.0.1:8080", "tokens")  # doctest: +SKIP
    """
    from compilers.tables.folders.replaced_folder import os_errors_as_unwritable
    from controller.rollout.build_archive import unpack
    from polarfab.controller_client import Client

    client = Client.to(url, key=URL_KEY, tokens=token_file, authority=authority)
    packed = client.ask("build")
    with TemporaryDirectory() as name:
        folder = Path(name) / "running"
        with os_errors_as_unwritable(folder, "set TMPDIR to a folder that can be written"):
            unpack(packed, folder)
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
        fabric: the fabric to move to, verified or in memory.
        url: the URL of the controller's management API.
        token_file: a file whose first line is a token of the role `apply`. It is always needed,
            and a controller without tokens accepts no changes.
        authority: the authority of the controller's certificate (PEM), for https.
        accept_loss: whether to go on although pairs of hosts lose packets.
        unverified: whether to take tables that verification has not passed on.
        progress: called with (rounds done, all rounds).
        confirm_within: the seconds after which the fabric goes back unless the move is confirmed;
            0 for a move that needs no confirmation.

    Raises:
        InputError: the controller does not answer, or refuses; or the fabric has several planes.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> polarfab.apply(fabric, "http://127.0.0.1:8080", "tokens")["state"]  # doctest: +SKIP
        'done'
    """
    from controller.rollout.build_archive import pack
    from polarfab.controller_client import Client

    fabric.require_one_plane()  # each plane has a controller of its own
    with fabric.usable(unverified) as usable:
        client = Client.to(url, key=URL_KEY, tokens=token_file, authority=authority)
        packed = pack(usable.folders[0])
        return client.apply(packed, accept_loss, unverified, progress, confirm_within)


def check_routes(
    fabric: Fabric,
    files: Iterable[str | Path],
    target: str = "",
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> RouteReport:
    """Compare the routing tables of switches with the tables of a fabric.

    Args:
        fabric: the fabric; it is compiled if it is not.
        files: files named by their switches, and folders of such files.
        target: the target that configured the switches; "" to recognize it by the files.
        options: the options with which the switches' configurations were rendered.
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
    """Put a fabric's routes on routers: add and remove routes, compare the tables, and save.

    Args:
        fabric: the fabric, verified or in memory.
        target: a system whose devices a push can reach; "" for the own system of each switch.
        settings: how switches are reached, how many at a time, and whether nothing is changed.
        options: the options of the target, as for `render`.
        nodes: only these switches; () for all.
        unverified: whether to take tables that verification has not passed on.
        progress: called with (rounds on a switch done, all rounds), from several threads.
        old: the fabric that the routers hold. With it all routers change in the rounds of `plan`.

    Raises:
        InputError: there is no such target or switch, ssh would take the name of a switch for
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
    from controller.devices.device_push import DevicePush, device_class_of
    from controller.devices.push_rounds import RenderedBuild

    if target:
        device_class_of(target)  # before what is missing for files that no push would send
    fabric.require_one_plane()
    with fabric.usable(unverified) as usable, TemporaryDirectory() as folder:
        (build,) = builds_for([usable.build], target)
        rendered, before = Path(folder) / "new", None
        with _with_folder_in_problems(fabric):
            PlaneRendering((build,), target, None, options, nodes).into(rendered)
        if old:
            (old_build,) = builds_for([old.build], target)
            old_rendered = Path(folder) / "old"
            with _with_folder_in_problems(old):
                PlaneRendering((old_build,), target, None, options).into(old_rendered)
            before = RenderedBuild(old_build, old_rendered)
        device_push = DevicePush(
            build,
            target=target,
            options=options or {},
            rendered=rendered,
            settings=settings,
            progress=progress,
            old=before,
        )
        return device_push.run(nodes)


@contextmanager
def _with_folder_in_problems(fabric: Fabric) -> Iterator[None]:
    """Add the folder of a fabric to the problems that the body raises with its routing policy."""
    try:
        yield
    except InputError as error:
        folder = str(fabric.folder or "")
        if not folder or any(not problem.key.startswith("routing.") for problem in error.problems):
            raise
        raise InputError(replace(problem, file=folder) for problem in error.problems) from None
