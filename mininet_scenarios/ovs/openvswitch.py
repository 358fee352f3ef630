"""A private Open vSwitch: its own database and daemon in a folder, separate from the host's.

Run it inside fresh network and process namespaces (`NAMESPACES` before the command). Then the host
is never touched, and the kernel removes everything whatever happens. `configuration_database` makes
its bridges and ports.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

NAMESPACES = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
"""The words before a command that is to run in namespaces of its own."""
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
"""The schema of the configuration database, as Debian installs it."""
DAEMON_PATIENCE = 30
"""Seconds after which a daemon or a command that has not answered is given up."""
RARE_STATISTICS = "other_config:stats-update-interval=3600000"
"""Lets the switch write its counters into the database each hour only (in milliseconds). To write
the counters of thirty thousand ports takes seconds each time."""
DAEMON_POLL = 0.01
"""Seconds between two looks at what is awaited."""
LOG_CHARACTERS = 400
"""Most characters of a log's end that an error has."""


class OpenVSwitchError(Exception):
    """A daemon did not start or a command failed; the text has the end of what it printed."""


class PrivateOvs:
    """ovsdb-server and ovs-vswitchd on files in one folder. Works as a context manager too."""

    def __init__(self, folder: Path, logs: Path | None = None) -> None:
        """Name the files.

        Args:
            folder: for the database and the sockets.
            logs: the folder for logs; `folder` if None.
        """
        self.folder = folder.resolve()
        self.logs = (logs or folder).resolve()
        self.socket = self.folder / "db.sock"
        """The socket of the database."""
        self.env: dict[str, str] = {
            **os.environ,
            "PATH": os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin",
            "OVS_RUNDIR": str(self.folder),
            "OVS_DBDIR": str(self.folder),
            "OVS_LOGDIR": str(self.logs),
            "OVS_SYSCONFDIR": str(self.folder),
        }
        """The environment in which Open vSwitch's tools, which Mininet also calls, find it."""
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
            self.vsctl(
                "set", "Open_vSwitch", ".", "external_ids:system-id=polarfab", RARE_STATISTICS
            )
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

    def refresh_cached_flows(self) -> None:
        """Wait until cached flows follow all changes that Open vSwitch has noticed.

        The packets of these flows are counted then, too.

        Raises:
            OpenVSwitchError: it failed or took longer than `DAEMON_PATIENCE`.
        """
        # The command waits for the end of a look at all cached flows. The one that ends first may
        # have begun before the last change.
        for _ in range(2):
            self.appctl("revalidator/wait")

    def __enter__(self) -> PrivateOvs:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _spawn(self, name: str, *args: str) -> None:
        """Start a daemon."""
        log = f"--log-file={self.logs / name}.log"
        command = [name, "-vconsole:off", "-vsyslog:off", "--pidfile", log, *args]
        self._daemons.append(subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL))

    def _wait_for_socket(self) -> None:
        """Wait until the database takes connections."""
        deadline = time.monotonic() + DAEMON_PATIENCE
        while not self._listens():
            if self._daemons[0].poll() is not None or time.monotonic() > deadline:
                raise OpenVSwitchError(f"ovsdb-server does not come up{self._last_words()}")
            time.sleep(DAEMON_POLL)

    def _listens(self) -> bool:
        """Whether the database takes connections: it does so a moment after its socket exists."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            except OSError:  # a path that is too long for Python, not for Open vSwitch
                return self.socket.exists()
        return True

    def _run(self, *command: str) -> str:
        """Run a command of Open vSwitch, and return what it prints."""
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
        ends = [(log.name, log.read_text()[-LOG_CHARACTERS:]) for log in logs if log.exists()]
        return "".join(f"\n{name}: {end}" for name, end in ends)
