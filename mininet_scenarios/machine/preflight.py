"""Checks that this machine has what an engine needs, with the packages to install."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec

from inventory.problems import InputError, Problem, install_extra
from mininet_scenarios.ovs.openvswitch import NAMESPACES

PACKAGE_OF_TOOL = {
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovsdb-tool": "openvswitch-common",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-ofctl": "openvswitch-common",
    "mnexec": "mininet",
    "ifconfig": "net-tools",
    "ip": "iproute2",
    "mount": "mount",
    "unshare": "util-linux",
}
"""The programs and the Debian packages that they come in."""
ROUTER_TOOLS = {
    **{tool: PACKAGE_OF_TOOL[tool] for tool in ("ip", "mount", "unshare")},
    "nsenter": "util-linux",
    "sysctl": "procps",
}
"""The same for the engines linux and frr."""
FRR_TOOLS = {"vtysh": "frr"}
FRAMEWORK_PACKAGES = {"ryu": "ryu", "os-ken": "os_ken"}
TUN = "/dev/net/tun"
ABSENT = "not there"
SBIN = os.pathsep.join(["", "/usr/local/sbin", "/usr/sbin", "/sbin"])


def namespaces() -> list[str]:
    """The command prefix for fresh namespaces; with a user namespace where we are not root."""
    command = list(NAMESPACES)
    return command if os.geteuid() == 0 else [command[0], "--map-root-user", *command[1:]]


def choose_framework(wanted: str | None) -> str | None:
    """The controller framework to use: the wanted one, else Ryu, else os-ken; None without any."""
    there = [name for name, package in FRAMEWORK_PACKAGES.items() if find_spec(package)]
    return next((name for name in there if wanted in (None, name)), None)


def missing(framework: str | None, engine: str = "mininet") -> list[Problem]:
    """Everything that keeps an engine with Open vSwitch from running here."""
    absent, problems = _absent(PACKAGE_OF_TOOL, engine)

    def lacking(what: str, todo: str, given: str = ABSENT) -> None:
        problems.append(_missing(what, todo, given, engine=engine))

    if not find_spec("mininet"):
        lacking("the Python package mininet", install_extra("mininet"))
    if choose_framework(framework) is None:
        extra = framework or "os-ken"
        lacking(framework or "Ryu or os-ken", install_extra(extra))
    if not os.access(TUN, os.R_OK | os.W_OK):
        there = os.path.exists(TUN)  # noqa: PTH110
        todo = "run as root" if there else "as root: modprobe tun"
        given = "no permission" if there else ABSENT
        lacking(f"access to {TUN}", todo, given)
    if not {"unshare", "mnexec"} & set(absent) and (refusal := _refused("mnexec", "-n")):
        problems.append(_no_namespaces(refusal, engine))
    return problems


def require(framework: str | None, engine: str = "mininet") -> str:
    """The framework to use for an engine with Open vSwitch.

    Raises:
        InputError: something is missing; all of it at once.
    """
    problems = missing(framework, engine)
    chosen = choose_framework(framework)
    if problems or chosen is None:
        raise InputError(problems)
    return chosen


def require_routers(engine: str) -> None:
    """Pass where the engine linux or frr can run.

    Raises:
        InputError: something is missing; all of it at once.
    """
    tools = ROUTER_TOOLS | (FRR_TOOLS if engine == "frr" else {})
    absent, problems = _absent(tools, engine)
    if "unshare" not in absent and (refusal := _refused("unshare", "--net")):
        problems.append(_no_namespaces(refusal, engine))
    if problems:
        raise InputError(problems)


def _absent(tools: dict[str, str], engine: str) -> tuple[list[str], list[Problem]]:
    """Which of these programs are not there, and the message about them."""
    path = os.environ.get("PATH", os.defpath) + SBIN
    absent = [tool for tool in tools if not shutil.which(tool, path=path)]
    packages = sorted({tools[tool] for tool in absent})
    todo = f"apt install {' '.join(packages)}"
    return absent, [_missing(", ".join(absent), todo, engine=engine)] if absent else []


def _no_namespaces(refusal: str, engine: str) -> Problem:
    todo = "run as root" if os.geteuid() else "a container needs --privileged"
    return _missing(f"namespaces of one's own ({refusal})", todo, engine=engine)


def _refused(*command: str) -> str:
    """What the kernel says when namespaces are made as the engine makes them; "" if all is well.

    `command` makes one more, of the network, for a host.
    """
    path = {**os.environ, "PATH": os.environ.get("PATH", os.defpath) + SBIN}
    trial = subprocess.run(
        [*namespaces(), *command, "true"],
        env=path,
        capture_output=True,
        text=True,
        check=False,
    )
    return trial.stderr.strip() or f"exit code {trial.returncode}" if trial.returncode else ""


def _missing(what: str, todo: str, given: str = ABSENT, *, engine: str) -> Problem:
    return Problem(key=f"--engine {engine}", required=what, given=given, todo=todo)
