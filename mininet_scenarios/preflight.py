"""What the Mininet engine needs of this machine, and what to install where it is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec

from inventory.problems import InputError, Problem
from mininet_scenarios.openvswitch import NAMESPACES

TOOLS = {
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovsdb-tool": "openvswitch-common",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-ofctl": "openvswitch-common",
    "mnexec": "mininet",
    "ifconfig": "net-tools",
    "ping": "iputils-ping",
    "ip": "iproute2",
    "mount": "mount",
    "unshare": "util-linux",
}
"""The programs and the Debian packages that they come in."""
FRAMEWORKS = {"ryu": "ryu", "os-ken": "os_ken"}
TUN = "/dev/net/tun"
ABSENT = "not there"
SBIN = os.pathsep.join(["", "/usr/local/sbin", "/usr/sbin", "/sbin"])


def namespaces() -> list[str]:
    """The command prefix for fresh namespaces; with a user namespace where we are not root."""
    command = list(NAMESPACES)
    return command if os.geteuid() == 0 else [command[0], "--map-root-user", *command[1:]]


def choose_framework(wanted: str | None) -> str | None:
    """The controller framework to use: the wanted one, else Ryu, else os-ken; None without any."""
    there = [name for name, package in FRAMEWORKS.items() if find_spec(package)]
    return next((name for name in there if wanted in (None, name)), None)


def missing(framework: str | None) -> list[Problem]:
    """Everything that keeps Mininet from running here."""
    path = os.environ.get("PATH", os.defpath) + SBIN
    absent = [tool for tool in TOOLS if not shutil.which(tool, path=path)]
    problems = []
    if absent:
        packages = sorted({TOOLS[tool] for tool in absent})
        problems.append(_missing(", ".join(absent), f"apt install {' '.join(packages)}"))
    if not find_spec("mininet"):
        problems.append(_missing("the Python package mininet", "pip install 'polarfab[mininet]'"))
    if choose_framework(framework) is None:
        extra = framework or "os-ken"
        problems.append(_missing(framework or "Ryu or os-ken", f"pip install 'polarfab[{extra}]'"))
    if not os.access(TUN, os.R_OK | os.W_OK):
        there = os.path.exists(TUN)  # noqa: PTH110
        todo = "run as root" if there else "as root: modprobe tun"
        given = "no permission" if there else ABSENT
        problems.append(_missing(f"access to {TUN}", todo, given))
    if not {"unshare", "mnexec"} & set(absent) and (refusal := _refused()):
        todo = "run as root" if os.geteuid() else "a container needs --privileged"
        problems.append(_missing(f"namespaces of one's own ({refusal})", todo))
    return problems


def require(framework: str | None) -> str:
    """The framework to use.

    Raises:
        InputError: something is missing; all of it at once.
    """
    problems = missing(framework)
    chosen = choose_framework(framework)
    if problems or chosen is None:
        raise InputError(problems)
    return chosen


def _refused() -> str:
    """What the kernel says when namespaces are made as the engine makes them; "" if all is well."""
    path = {**os.environ, "PATH": os.environ.get("PATH", os.defpath) + SBIN}
    trial = subprocess.run(
        [*namespaces(), "mnexec", "-n", "true"],
        env=path,
        capture_output=True,
        text=True,
        check=False,
    )
    return trial.stderr.strip() or f"exit code {trial.returncode}" if trial.returncode else ""


def _missing(what: str, todo: str, given: str = ABSENT) -> Problem:
    return Problem(key="--engine mininet", required=what, given=given, todo=todo)
