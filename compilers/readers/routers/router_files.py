"""Readers of the folders of routers whose links have addresses, one a system.

Where a system gets the same in two files, the second has to say what the first says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.routers.avd_config import read_avd
from compilers.readers.routers.cli_sections import (
    CliReader,
    read_eos,
    read_frr_under_sonic,
    read_nxos,
)
from compilers.readers.routers.eos_priorities import without_priorities
from compilers.readers.routers.junos_set import read_junos
from compilers.readers.routers.router_forwarding import (
    agree,
    agree_on_facts,
    agree_on_interfaces,
    forwarding,
)
from compilers.readers.routers.router_text import RouterText, in_block
from compilers.readers.routers.sonic_config import read_sonic
from compilers.readers.routers.srlinux_config import read_srlinux
from compilers.readers.strict_json import JsonError, parse


def eos(folder: Path) -> EmittedSwitch:
    """A folder of target eos: the device's configuration, and AVD's, which says the same."""
    return _eos(read_cli(read_eos, folder / "eos.cfg"), read_router(read_avd, folder / "avd.json"))


def _eos(router: RouterText, avd: RouterText) -> EmittedSwitch:
    agree_on_interfaces(router, avd)
    agree_on_facts(router, avd)
    agree(router, avd)
    return forwarding(router, avd)


def lossless_eos(folder: Path) -> EmittedSwitch:
    """The same with lossless priorities, which are `eos_priorities`'s."""
    return _eos(
        read_cli(lambda text, file: read_eos(without_priorities(text), file), folder / "eos.cfg"),
        read_router(lambda text, file: read_avd(_routes_alone(text), file), folder / "avd.json"),
    )


def _routes_alone(text: str) -> str:
    """AVD's structured config with commands about routes only, line by line as it was."""
    tree = parse(text)
    lines = without_priorities(tree.get("eos_cli", "")).splitlines()
    tree["eos_cli"] = "\n".join(line for line in lines if line != "!")
    for port in tree.get("ethernet_interfaces", []):
        port.pop("service_profile", "")
    return json.dumps(tree, indent=2)


def nxos(folder: Path) -> EmittedSwitch:
    """A folder of target nxos."""
    return forwarding(read_cli(read_nxos, folder / "nxos.cfg"))


def junos(folder: Path) -> EmittedSwitch:
    """A folder of target junos."""
    return forwarding(read_cli(read_junos, folder / "junos.set"))


def srlinux(folder: Path) -> EmittedSwitch:
    """A folder of target srlinux."""
    return forwarding(read_router(read_srlinux, folder / "srlinux.json"))


def sonic(folder: Path, hwsku: str = "", parts: Collection[str] = ()) -> EmittedSwitch:
    """A folder of target sonic: CONFIG_DB, and the frr.conf of the same routes.

    Args:
        folder: of a switch.
        hwsku: the hardware's name that it is to have.
        parts: what it has beside the usual, of `SONIC_PARTS`: SRv6 uSIDs, whose routes are
            `segment_check`'s, or lossless priorities, which are `priority_check`'s.
    """
    read = partial(read_sonic, hwsku=hwsku, parts=parts)
    router = read_router(read, folder / "config_db.json")
    frr = read_cli(read_frr_under_sonic, folder / "frr.conf")
    agree(router, frr)
    agree_on_facts(router, frr)
    if router.segments:
        inside = [p for p in router.transit.prefixes if in_block(p, router.segments)]
        router.transit = router.transit.without(inside)
    return forwarding(router, frr)


def read_cli(read: CliReader, file: Path) -> RouterText:
    """What a file in sections says, with static routes: statements about BGP have no place there.

    Raises:
        OSError: it cannot be read.
        ValueError: (file, line, text) it makes no sense.
    """

    def alone(text: str, name: str) -> RouterText:
        router, engine = read(text, name)
        router.strange = sorted([*router.strange, *((n, t) for t, n in engine.said.items())])
        return router

    return read_router(alone, file)


def read_router(read: Callable[[str, str], RouterText], file: Path) -> RouterText:
    """What a file says.

    Raises:
        OSError: it cannot be read.
        ValueError: (file, line, text) it makes no sense.
    """
    try:
        return read(file.read_text(), str(file))
    except JsonError as error:
        raise ValueError(str(file), error.line, str(error)) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(file), 0, f"not the parts of such a file: {error!r}") from error
    except UnicodeDecodeError as error:
        raise ValueError(str(file), 0, "no text in UTF-8") from error
