"""A private Open vSwitch: its own database and daemon in a folder, separate from the host's.

Run it inside fresh network and process namespaces (`NAMESPACES` before the command), so that the
host is never touched and the kernel removes everything whatever happens.

Bridges and ports are made in one transaction of its database (RFC 7047): a thousand bridges with
thirty thousand ports are up in seconds this way, where a command a bridge takes minutes, as the
switch looks at its whole configuration after each.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMESPACES = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
"""The command prefix that gives the rest of the command namespaces of its own."""
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
DAEMON_PATIENCE = 30
"""Seconds after which a daemon or a command that has not answered is given up."""
SELDOM = "other_config:stats-update-interval=3600000"
"""Milliseconds: counters of thirty thousand ports in the database cost seconds each time."""
DAEMON_POLL = 0.01
"""Seconds between two looks for a socket."""


class OpenVSwitchError(Exception):
    """A daemon did not start or a command failed; the text has its last words."""


class PrivateOvs:
    """ovsdb-server and ovs-vswitchd on files in one folder.

    `env` is the environment in which Open vSwitch's own tools (and Mininet, which calls them) find
    this instance; logs go to `logs`, or to the folder. Works as a context manager too.
    """

    def __init__(self, folder: Path, logs: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.logs = (logs or folder).resolve()
        self.socket = self.folder / "db.sock"
        self.env: dict[str, str] = {
            **os.environ,
            "PATH": os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin",
            "OVS_RUNDIR": str(self.folder),
            "OVS_DBDIR": str(self.folder),
            "OVS_LOGDIR": str(self.logs),
            "OVS_SYSCONFDIR": str(self.folder),
        }
        self._daemons: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start both daemons; returns when they answer.

        Raises:
            OpenVSwitchError: Open vSwitch is not installed, or a daemon does not come up.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        database = str(self.folder / "conf.db")
        self._run("ovsdb-tool", "create", database, str(SCHEMA))
        try:
            self._spawn("ovsdb-server", database, f"--remote=punix:{self.socket}")
            self._wait_for_socket()
            self.vsctl("--no-wait", "init")
            self._spawn("ovs-vswitchd", f"unix:{self.socket}")
            self.vsctl("set", "Open_vSwitch", ".", "external_ids:system-id=polarfab", SELDOM)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End both daemons, the switch first; harmless when they are not running."""
        while self._daemons:
            daemon = self._daemons.pop()
            daemon.terminate()
            try:
                daemon.wait(DAEMON_PATIENCE)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def vsctl(self, *args: str) -> str:
        """What `ovs-vsctl ARGS` prints; it waits until the switch has applied it.

        Raises:
            OpenVSwitchError: it failed or took longer than `DAEMON_PATIENCE`.
        """
        return self._run(
            "ovs-vsctl", f"--timeout={DAEMON_PATIENCE}", f"--db=unix:{self.socket}", *args
        )

    def ofctl(self, *args: str) -> str:
        """What `ovs-ofctl -O OpenFlow13 ARGS` prints.

        Raises:
            OpenVSwitchError: it failed or took longer than `DAEMON_PATIENCE`.
        """
        return self._run("ovs-ofctl", f"--timeout={DAEMON_PATIENCE}", "-O", "OpenFlow13", *args)

    def appctl(self, *args: str) -> str:
        """What `ovs-appctl ARGS` prints, `ofproto/trace` for instance.

        Raises:
            OpenVSwitchError: it failed or took longer than `DAEMON_PATIENCE`.
        """
        return self._run("ovs-appctl", f"--timeout={DAEMON_PATIENCE}", *args)

    def __enter__(self) -> PrivateOvs:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _spawn(self, name: str, *args: str) -> None:
        log = f"--log-file={self.logs / name}.log"
        command = [name, "-vconsole:off", "-vsyslog:off", "--pidfile", log, *args]
        self._daemons.append(subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL))

    def _wait_for_socket(self) -> None:
        deadline = time.monotonic() + DAEMON_PATIENCE
        while not self._listens():
            if self._daemons[0].poll() is not None or time.monotonic() > deadline:
                raise OpenVSwitchError(f"ovsdb-server does not come up{self._last_words()}")
            time.sleep(DAEMON_POLL)

    def _listens(self) -> bool:
        """Whether the database takes connections: its socket is there a moment before."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            except OSError:  # a path that is too long for Python, not for Open vSwitch
                return self.socket.exists()
        return True

    def _run(self, *command: str) -> str:
        try:
            done = subprocess.run(
                command, env=self.env, capture_output=True, text=True, check=False
            )
        except FileNotFoundError as error:
            raise OpenVSwitchError(
                f"{command[0]} is not installed: apt install openvswitch-switch"
            ) from error
        if done.returncode:
            raise OpenVSwitchError(
                f"{' '.join(command)}: {done.stderr.strip()}{self._last_words()}"
            )
        return done.stdout

    def _last_words(self) -> str:
        """The ends of the logs of daemons that have died."""
        dead = [str(d.args[0]) for d in self._daemons if d.poll() is not None]  # type: ignore[index]
        logs = [self.logs / f"{name}.log" for name in dead]
        return "".join(f"\n{log.name}: {log.read_text()[-400:]}" for log in logs if log.exists())


OVSDB_PATIENCE = 300
"""Seconds that the switch may take to do what a transaction says."""
PROBE = 60_000
"""Milliseconds before a silent controller is asked: while thousands of flows arrive it is busy."""
OVSDB_READ_BYTES = 1 << 20

Operation = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a bridge."""

    name: str
    """The name of its interface."""
    number: int
    """Its OpenFlow number."""
    peer: str = ""
    """The patch port that it is cabled to; "" for an existing network interface."""

    def row(self) -> Operation:
        """Its row in the table Interface."""
        row: Operation = {"name": self.name, "ofport_request": self.number}
        if self.peer:
            row |= {"type": "patch", "options": _map({"peer": self.peer})}
        return row


@dataclass(frozen=True, slots=True)
class BridgeRow:
    """A bridge in the userspace datapath that forwards nothing until it has flows."""

    name: str
    """The name of the bridge."""
    datapath_id: int
    """Its OpenFlow datapath id, of 64 bits."""
    ports: Sequence[Port]
    """Its ports."""
    controller: str = ""
    """HOST:PORT of its OpenFlow 1.3 controller; "" for none."""

    def operations(self) -> list[Operation]:
        """What inserts its rows: ports, interfaces, controller, and the bridge as `_id(name)`."""
        local = {"name": self.name, "type": "internal"}
        operations = [*_port_operations(local)]
        for port in self.ports:
            operations += _port_operations(port.row())
        row: Operation = {
            "name": self.name,
            "datapath_type": "netdev",
            "fail_mode": "secure",
            "protocols": "OpenFlow13",
            "other_config": _map(
                {"datapath-id": f"{self.datapath_id:016x}", "disable-in-band": "true"}
            ),
            "ports": _set(
                _named(_id("port", p)) for p in [self.name, *(p.name for p in self.ports)]
            ),
        }
        if self.controller:
            name = _id("controller", self.name)
            target = {
                "target": f"tcp:{self.controller}",
                "max_backoff": 1000,
                "inactivity_probe": PROBE,
                "connection_mode": "out-of-band",
            }
            operations.append(_insert("Controller", target, name))
            row["controller"] = _named(name)
        return [*operations, _insert("Bridge", row, _id("bridge", self.name))]


class Database:
    """The configuration database at a Unix socket, and the switch that follows it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def change(
        self, before: Sequence[BridgeRow], after: Sequence[BridgeRow], whole: bool = True
    ) -> None:
        """Make bridges of before into those of after, all at once; returns when they are so.

        What both have stays untouched. A port of the same name with another peer is made anew.
        Rows that nothing refers to any more go by themselves (RFC 7047, §3.2).

        Args:
            before: bridges that are there.
            after: what they are to be.
            whole: whether the other end of every patch port is among their ports.

        Raises:
            OpenVSwitchError: it is refused, or an interface could not be opened.
        """
        old, new = ({bridge.name: bridge for bridge in bridges} for bridges in (before, after))
        new_bridges = [new[name] for name in new if name not in old]
        named = [_named(_id("bridge", bridge.name)) for bridge in new_bridges]
        operations = [row for bridge in new_bridges for row in bridge.operations()]
        operations.append(_mutate("Open_vSwitch", [], "bridges", "insert", named))
        gone = self._rows("Bridge", [name for name in old if name not in new])
        operations.append(_mutate("Open_vSwitch", [], "bridges", "delete", gone))
        for name in new.keys() & old.keys():
            old_ports, new_ports = set(old[name].ports), set(new[name].ports)
            for port in new_ports - old_ports:
                operations += _port_operations(port.row())
            added = [_named(_id("port", port.name)) for port in new_ports - old_ports]
            removed = self._rows("Port", [port.name for port in old_ports - new_ports])
            for how, ports in (("delete", removed), ("insert", added)):
                if ports:
                    operations.append(_mutate("Bridge", _is(name), "ports", how, ports))
        self.apply(operations)
        failed = self.transact([_select("Interface", [["error", "!=", _set([])]], "name", "error")])
        for row in failed[0]["rows"] if whole else ():
            raise OpenVSwitchError(f"interface {row['name']}: {row['error']}")

    def _rows(self, table: str, names: Sequence[str]) -> list[Any]:
        """The UUIDs of the rows of these names, by which other rows refer to them."""
        selections = [_select(table, _is(name), "_uuid") for name in names]
        answers = self.transact(selections) if selections else []
        return [row["_uuid"] for answer in answers for row in answer["rows"]]

    def apply(self, operations: list[Operation]) -> None:
        """Do it, and wait until the switch has done it.

        Raises:
            OpenVSwitchError: it is refused.
        """
        count = {"op": "mutate", "table": "Open_vSwitch", "where": []}
        answers = self.transact(
            [
                *operations,
                {**count, "mutations": [["next_cfg", "+=", 1]]},
                _select("Open_vSwitch", [], "next_cfg"),
            ]
        )
        done = {"columns": ["cur_cfg"], "rows": [{"cur_cfg": answers[-1]["rows"][0]["next_cfg"]}]}
        wait = {"op": "wait", "table": "Open_vSwitch", "where": [], "until": "=="}
        self.transact([{**wait, **done, "timeout": OVSDB_PATIENCE * 1000}])

    def transact(self, operations: list[Operation]) -> list[dict[str, Any]]:
        """The answers to the operations of one transaction (RFC 7047, §4.1.3 and §5.2).

        Raises:
            OpenVSwitchError: it was refused, and nothing was changed.
            OSError: the database does not answer.
        """
        request = {"method": "transact", "params": ["Open_vSwitch", *operations], "id": 0}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(OVSDB_PATIENCE)
            connection.connect(str(self.path))
            connection.sendall(json.dumps(request).encode())
            answer = _answer(connection)
        if answer["error"]:
            raise OpenVSwitchError(json.dumps(answer["error"]))
        results: list[dict[str, Any]] = answer["result"]
        if wrong := next((result for result in results if result and "error" in result), None):
            raise OpenVSwitchError(f"{wrong['error']}: {wrong.get('details', '')}")
        return results


def _answer(connection: socket.socket) -> dict[str, Any]:
    """The answer to our request; the server's own requests, echoes, are answered meanwhile."""
    data = bytearray()
    while more := connection.recv(OVSDB_READ_BYTES):
        data += more
        if not more.endswith(b"}"):
            continue
        try:
            message: dict[str, Any] = json.loads(data)
        except ValueError:
            continue
        data.clear()
        if "method" not in message:
            return message
        reply = {"id": message["id"], "result": message["params"], "error": None}
        connection.sendall(json.dumps(reply).encode())
    raise OpenVSwitchError("the database has hung up")


def _port_operations(interface: Operation) -> tuple[Operation, Operation]:
    name = str(interface["name"])
    port = {"name": name, "interfaces": _named(_id("interface", name))}
    return _insert("Interface", interface, _id("interface", name)), _insert(
        "Port", port, _id("port", name)
    )


def _id(kind: str, name: str) -> str:
    """A name for a new row within its transaction: an identifier."""
    return re.sub(r"\W", "_", f"{kind}_{name}")


def _named(name: str) -> list[str]:
    return ["named-uuid", name]


def _insert(table: str, row: Operation, name: str) -> Operation:
    return {"op": "insert", "table": table, "row": row, "uuid-name": name}


def _select(table: str, where: list[Any], *columns: str) -> Operation:
    return {"op": "select", "table": table, "where": where, "columns": columns}


def _mutate(table: str, where: list[Any], column: str, how: str, values: list[Any]) -> Operation:
    mutation = [column, how, _set(values)]
    return {"op": "mutate", "table": table, "where": where, "mutations": [mutation]}


def _is(name: str) -> list[Any]:
    return [["name", "==", name]]


def _set(values: Iterable[Any]) -> list[Any]:
    return ["set", list(values)]


def _map(values: dict[str, str]) -> list[Any]:
    return ["map", [[key, value] for key, value in values.items()]]
