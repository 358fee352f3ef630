"""Checks before an emulation that this machine has the programs and resources of its engine.

`require` checks programs, packages and rights; `require_resources` and `require_neighbours` check
memory, files, processes and neighbour tables. Limits of the whole machine are reported, never set.
The memory per port and host was measured. The other amounts follow from the parts of an engine: a
shell and programs for flows per host, two descriptors per port of Open vSwitch, and in the kernel's
neighbour tables an entry for the gateway of each host. A neighbour table has one limit for all
network namespaces, which counts every entry but permanent ones.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from compilers import memory
from compilers.memory import lines_of
from compilers.tables.build import Build
from inventory.problems import InputError, Problem, install_extra
from mininet_scenarios.ovs.openvswitch import NAMESPACES
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.scenario_file import FlowSpec

OVS_TOOLS = {
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
"""The programs that engines with Open vSwitch need, and the Debian package of each."""
ROUTER_TOOLS = {
    **{tool: OVS_TOOLS[tool] for tool in ("ip", "mount", "unshare")},
    "nsenter": "util-linux",
    "sysctl": "procps",
}
"""The programs that engines of routers need, and the Debian package of each."""
TOOLS = {
    "mininet": OVS_TOOLS,
    "ovs-fabric": OVS_TOOLS,
    "linux": ROUTER_TOOLS,
    "frr": {**ROUTER_TOOLS, "vtysh": "frr"},
}
"""By engine, the programs that it needs, and the Debian package of each."""
FRAMEWORK_PACKAGES = {"ryu": "ryu", "os-ken": "os_ken"}
"""The Python package of each controller framework."""
TUN = "/dev/net/tun"
"""The device by which Open vSwitch's userspace datapath makes interfaces."""
SBIN = os.pathsep.join(["", "/usr/local/sbin", "/usr/sbin", "/sbin"])
"""The end of a PATH: folders that a user's PATH may lack."""
BASE_MB, MB_PER_PORT, MB_PER_HOST = 200, 0.2, 1.0
"""Megabytes of memory: of every emulation, and more for each port and host. Measured at q=3 and q=5
were 145, 0.09 and 0.4."""
FILES_PER_PORT, BASE_FILES = 2, 256
"""Open files of Open vSwitch's process: for each port, and of every emulation."""
PROCESSES_PER_HOST, BASE_PROCESSES = 4, 64
"""Processes: for each host, and of every emulation."""
UNLIMITED = 1 << 40
"""Stands for a limit that the kernel does not have."""
NEIGHBOURS = {4: "arp_cache", 6: "ndisc_cache"}
"""By version of the Internet protocol, the statistics of the kernel's table in /proc/net/stat."""
PID_MAX = Path("/proc/sys/kernel/pid_max")
"""The file with the largest number of processes that the machine may have."""


def namespaces() -> list[str]:
    """The command prefix for fresh namespaces; with a user namespace where we are not root."""
    command = list(NAMESPACES)
    return command if os.geteuid() == 0 else [command[0], "--map-root-user", *command[1:]]


def choose_framework(requested: str | None) -> str | None:
    """The controller framework to use.

    Args:
        requested: a framework, or None for Ryu, else os-ken.

    Returns:
        The framework; None if the requested one, or any without a request, is not installed.
    """
    installed = [name for name, package in FRAMEWORK_PACKAGES.items() if find_spec(package)]
    return next((name for name in installed if requested in (None, name)), None)


def require(engine: str, framework: str | None = None) -> str:
    """Require that this machine has what an engine needs.

    Args:
        engine: the name of an engine that has its own processes.
        framework: the controller framework to use; None for any.

    Returns:
        The controller framework to use; "" for an engine of routers, which has no controller.

    Raises:
        InputError: a program, a package or a right is missing; one problem for each.
    """
    tools, problems = TOOLS[engine], list[Problem]()

    def add_problem(required: str, todo: str, given: str = "not there") -> None:
        """Add the problem that the machine lacks something."""
        problems.append(Problem(key=f"engine {engine}", required=required, given=given, todo=todo))

    path = os.environ.get("PATH", os.defpath) + SBIN
    absent = [tool for tool in tools if not shutil.which(tool, path=path)]
    if absent:
        packages = sorted({tools[tool] for tool in absent})
        add_problem(", ".join(absent), f"apt install {' '.join(packages)}")
    controller_framework, host_command = "", ("unshare", "--net")
    if tools is OVS_TOOLS:
        host_command = ("mnexec", "-n")
        if not find_spec("mininet"):
            add_problem("the Python package mininet", install_extra("mininet"))
        controller_framework = choose_framework(framework) or ""
        if not controller_framework:
            add_problem(framework or "Ryu or os-ken", install_extra(framework or "os-ken"))
        if not os.access(TUN, os.R_OK | os.W_OK):
            if os.path.exists(TUN):  # noqa: PTH110
                add_problem(f"access to {TUN}", "run as root", "no permission")
            else:
                add_problem(f"access to {TUN}", "as root: modprobe tun")
    if engine == "frr" and os.geteuid():
        add_problem(
            "root, because FRR's daemons run as the user frr", "run as root", "another user"
        )
    if not {"unshare", host_command[0]} & set(absent):
        refusal = _namespace_error(*host_command)
        if refusal:
            todo = "run as root" if os.geteuid() else "a container needs --privileged"
            add_problem(f"namespaces of one's own ({refusal})", todo)
    if problems:
        raise InputError(problems)
    return controller_framework


def _namespace_error(*command: str) -> str:
    """The kernel's error when namespaces are made as the engine makes them; "" without one.

    Args:
        command: the words before a command that is to run in a network namespace of a host.
    """
    environment = {**os.environ, "PATH": os.environ.get("PATH", os.defpath) + SBIN}
    attempt = subprocess.run(
        [*namespaces(), *command, "true"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if not attempt.returncode:
        return ""
    return attempt.stderr.strip() or f"exit code {attempt.returncode}"


@dataclass(frozen=True, slots=True)
class Amount:
    """How much an emulation needs of a resource, and how much the machine has."""

    needed: int
    """The amount that the emulation needs."""
    available: int
    """The amount that the machine has."""
    words: str
    """The resource in words, with `{:,}` in the place of the amount."""
    todo: str
    """What to do if it is too little."""


def require_resources(build: Build, hosts: HostSample, flows: FlowSpec | None = None) -> None:
    """Refuse a machine without enough memory, or without iperf3 for TCP flows, for engine mininet.

    Raises:
        InputError: resources are too small; one problem for each.
    """
    ports = int(np.count_nonzero(build.wiring.far >= 0)) + len(hosts)
    problems = [
        Problem(
            key="engine mininet",
            required=amount.words.format(amount.needed),
            given=f"{amount.available:,}",
            todo=amount.todo,
        )
        for amount in _amounts(ports, len(hosts))
        if amount.available < amount.needed
    ]
    problems += _neighbour_problems("engine mininet", build, len(hosts))
    if flows and flows.protocol == "tcp" and not shutil.which("iperf3"):
        todo = "apt install iperf3, or protocol: udp"
        problems.append(
            Problem(required="iperf3", given="not there", todo=todo, key="engine mininet")
        )
    if problems:
        raise InputError(problems)


def _amounts(ports: int, hosts: int) -> list[Amount]:
    """The resources that an emulation with so many ports and hosts needs."""
    files = FILES_PER_PORT * ports + BASE_FILES
    processes = PROCESSES_PER_HOST * hosts + BASE_PROCESSES
    smaller = "a smaller fabric, fewer hosts (hosts: 1), or `engine model`"
    return [
        Amount(
            needed=round(BASE_MB + MB_PER_PORT * ports + MB_PER_HOST * hosts),
            available=memory.available() >> 20,
            words="{:,} MB of memory",
            todo=smaller,
        ),
        Amount(
            needed=files,
            available=_limit(resource.RLIMIT_NOFILE),
            words="{:,} open files per process",
            todo=f"ulimit -Hn {files}, or {smaller}",
        ),
        Amount(
            needed=processes,
            available=min(_limit(resource.RLIMIT_NPROC), _number(PID_MAX)),
            words="{:,} processes",
            todo=f"ulimit -u {processes}, or {smaller}",
        ),
    ]


def require_neighbours(engine: str, build: Build, hosts: HostSample) -> None:
    """Refuse a machine whose neighbour tables are too small for the hosts of an engine of routers.

    A host has an entry for its router, and the router one for the host.

    Raises:
        InputError: a table is too small.
    """
    if problems := _neighbour_problems(f"engine {engine}", build, 2 * len(hosts)):
        raise InputError(problems)


def _neighbour_problems(key: str, build: Build, entries: int) -> list[Problem]:
    """A problem for each neighbour table of the kernel that cannot hold so many more entries."""
    problems = []
    for version in (4, 6) if build.addressing.ipv6 else (4,):
        limit = _number(Path(f"/proc/sys/net/ipv{version}/neigh/default/gc_thresh3"))
        total = entries + _neighbours_now(version)
        if limit <= total:
            required = f"{total:,} entries in the neighbour table of IPv{version} (gc_thresh3)"
            todo = f"as root: sysctl -w net.ipv{version}.neigh.default.gc_thresh3={2 * total}"
            problems.append(Problem(key=key, required=required, given=f"{limit:,}", todo=todo))
    return problems


def _neighbours_now(version: int) -> int:
    """The entries of a neighbour table in all network namespaces; 0 if the kernel does not say.

    The number includes permanent entries, which do not count against the table's limit.
    """
    lines = lines_of(Path("/proc/net/stat") / NEIGHBOURS[version])
    return int(lines[1].split()[0], 16) if len(lines) > 1 else 0


def _limit(resource_number: int) -> int:
    """The hard limit of a resource of this process (`RLIMIT_…`)."""
    _, hard = resource.getrlimit(resource_number)
    return UNLIMITED if hard == resource.RLIM_INFINITY else hard


def _number(file: Path) -> int:
    """The number in a file of /proc; `UNLIMITED` if there is none."""
    lines = lines_of(file)
    return int(lines[0]) if lines and lines[0].isdecimal() else UNLIMITED
