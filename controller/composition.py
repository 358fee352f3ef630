"""Puts a controller together from its settings, and runs its parts at each tick.

`controller.app` makes a `Controller` and calls `begin`, `tick` and `end`. The parts are the fabric
with its sessions, the keeper that repairs tables, the audit, the mover, the reporter, and where
they are configured the management API and the membership in a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from compilers.tables.folders.folder_contents import MANIFEST
from controller.cluster import cluster_member
from controller.cluster.cluster_member import ClusterMember
from controller.management.action_log import ActionLog, Actor
from controller.management.tokens import Tokens
from controller.printer import Printer, to_errors
from controller.reporter import Reporter
from controller.restart import restart
from controller.rollout.build_history import BuildHistory
from controller.rollout.folder_lock import FolderLock
from controller.rollout.resumption import mover_with_journal
from controller.settings import Settings
from controller.state import Overview, State
from controller.switches import events
from controller.switches.connections import listening
from controller.switches.connections.listening import Entrance, raise_file_limit
from controller.switches.connections.tls_files import TlsFiles
from controller.switches.connections.tls_rehearsal import Peer
from controller.switches.current import Current
from controller.switches.events import Event
from controller.switches.framework import Framework
from controller.switches.session import LiveFabric
from controller.upkeep.background import NO_LIMIT, InOrder, Slices, freeze, in_thread
from controller.upkeep.port_counters import PortCounters
from controller.upkeep.repair_keeper import Keeper
from controller.upkeep.rolling_audit import RollingAudit
from controller.watchdog import Watchdog
from inventory.problems import InputError, install_extra

if TYPE_CHECKING:
    from controller.management.http_api import Api
    from controller.management.http_supervisor import HttpSupervisor

API_NEEDS = ("uvicorn", "prometheus_client")
"""The packages of the extra `http`."""
END_PATIENCE = 2.0
"""Most seconds at the end for the last output, and for the journal and the action log."""
API_BACKLOG = 128
"""Most clients of the API that wait to be accepted."""
HANGUP = Actor("SIGHUP", "", "")
"""The actor of a move to the folder's build, in the log of actions."""


class Controller:
    """The parts of a controller, put together from its settings; nothing listens for switches yet.

    Args:
        framework: Ryu or os-ken.
        read_build: returns the build, again at each SIGHUP.
        settings: of the controller.
        print_line: prints a line of output; it is called in a thread, and may take long.
        folder: where the build came from; a build applied over the API replaces it.

    Raises:
        InputError: files that cannot be read or written, another controller of the folder, too few
            open files, or an address where we cannot listen.
    """

    def __init__(
        self,
        framework: Framework,
        read_build: Callable[[], Current],
        settings: Settings,
        print_line: Callable[[str], None],
        folder: Path,
    ) -> None:
        # The fabric
        self.settings, self.folder, self._read_build = settings, folder, read_build
        self._hub = framework.hub
        self._tokens = Tokens.read(settings.tokens) if settings.tokens else Tokens()
        self._folder_stamp = _stamp(folder)
        """The `_stamp` of the folder when its build was read at the start, or last moved to."""
        self.fabric = fabric = LiveFabric(read_build(), framework.error_names, settings.foreign)
        """The switches."""
        self._lock = FolderLock(folder, fabric.tell)
        """Held until the process ends, so that no other controller uses the folder."""
        folder_build = fabric.current
        # The upkeep of its tables
        self._error_printer = Printer(to_errors)
        """The printer of tracebacks, on standard error."""
        self.watchdog = Watchdog(fabric.tell, print_error=self._error_printer)
        """Reports steps that fail or hang."""
        self.keeper = keeper = Keeper(fabric, settings.duties, in_thread)
        """Repairs the tables."""
        self.audit = RollingAudit(fabric, settings.audit, lambda: keeper.change_number)
        """Reads the switches again."""
        self.counters = PortCounters(fabric)
        """The counters of the ports."""
        # Connections with switches
        most_half_open = raise_file_limit(fabric.expected)
        has_tls_store = settings.group is not None and settings.group.is_encrypted
        shown_to: tuple[Peer, ...] = ("switch", "store") if has_tls_store else ("switch",)
        tls = (
            TlsFiles(settings.tls, shown_to, lambda: fabric.current.names) if settings.tls else None
        )
        self.entrance = Entrance(
            most_half_open, tls, fabric.rejected, fabric.listening_clock, self.watchdog.follow
        )
        """Accepts connections, or rejects them."""
        listening.use_listener(framework, self.entrance, settings.listen)
        # The management API
        self.api: Api | None = None
        """The API, while it is served."""
        self._http: HttpSupervisor | None = None
        """The process that serves the API, while there is one."""
        self._socket = _api_socket(settings, fabric.tell)
        """The socket where clients of the API connect; None without the API."""
        self.actions = ActionLog(folder, fabric.tell, self._hub.sleep)
        """The log of actions: who requested them, and when."""
        # Moves to other builds
        history = BuildHistory(folder, settings.unverified)
        self.member: ClusterMember | None = None
        """This controller's part in a cluster; None without one."""
        if settings.group:
            self.member = cluster_member.join(settings, fabric, keeper, history, tls)
            self.mover = self.member.mover
        else:
            # Writes of the build history run in one thread, one after the other, however many wait.
            history_writes = InOrder(NO_LIMIT, "build history").add
            self.mover = mover_with_journal(fabric, history, keeper, files=history_writes)
        # The loop and its output
        self._slices = Slices(self._hub.sleep)
        """Lets other work go on while something takes long."""
        self._frozen_identity = ""
        """The identity of the build whose objects garbage collection leaves out (`gc.freeze`)."""
        self._printer = Printer(print_line)
        """The printer of output."""
        self._print_error = ""
        """The error for which output could not be printed in the last step; "" if it could."""
        self._reporter = Reporter(
            fabric,
            self.state,
            self._printer,
            settings.as_json,
            settings.status_file,
            start_write=in_thread,
        )
        address = f"{'TLS, ' if settings.tls else ''}{settings.listen}"
        self._reporter.start(f"{framework.name} listens on {address}", folder_build)

    def state(self) -> State:
        """The state now."""
        return State.of(self.fabric, self.keeper, self.mover, self.member, self.watchdog)

    def begin(self) -> None:
        """Serve the API, and expect switches."""
        if self._socket:
            self.api = self._serve_api(self._socket)
        if self.member is None:
            self.keeper.expect()
        else:
            self.member.begin()

    def _serve_api(self, listener: Any) -> Api:
        """Serve the API and the status page from now on; returns the API."""
        from controller.management.http_api import Api
        from controller.management.http_supervisor import HttpSupervisor
        from controller.management.metrics import Metrics
        from controller.management.tls_copies import TlsCopies

        fabric, settings, hub = self.fabric, self.settings, self._hub
        overview = Overview(self.state)
        api = Api(
            overview,
            metrics=Metrics(overview, self.counters, self.entrance.tls),
            tokens=self._tokens,
            actions=self.actions,
            mover=self.mover,
            report_bug=self.watchdog.record_error,
            pause=hub.sleep,
            slices=self._slices,
        )
        tls_files = self.entrance.tls
        tls = TlsCopies(tls_files.contents) if tls_files else None
        http_settings = _http_settings(settings)
        self._http = http = HttpSupervisor(hub, listener, http_settings, fabric.tell, tls=tls)
        self.watchdog.follow("answering HTTP requests", hub.spawn(http.run, api))
        access = (
            "changes need a token"
            if self._tokens.accepted
            else "to read only, without --token-file"
        )
        if settings.token_to_read:
            access = "all but health needs a token"
        scheme = "https" if settings.tls else "http"
        fabric.tell(events.ApiOpened(f"{scheme}://{settings.http}", access))
        return api

    def tick(self, checks_certificates: bool) -> None:
        """Run each part's step; called a few times a second.

        Args:
            checks_certificates: whether to check for new certificates, too.
        """
        step = self._step
        if self.member and self.member.lapsed:
            step("restarting", partial(self._restart, self.member))
        # Time-outs and reading of switches, too; the keeper then repairs the tables.
        step("repairing", partial(self.fabric.tick, self._slices))
        step("auditing", self.audit.tick)
        step("moving", self.mover.tick)
        if self.member:
            step("leading", self.member.tick)
        if self.api:
            step("counting", self.counters.tick)
            step("reporting new tokens", self.api.report_tokens)
        step("ending idle connections", self.entrance.tick)
        if checks_certificates:
            step("looking for new certificates", self._look_for_certificates)
        step("using new certificates", self._use_certificates)
        step("reporting", self._report)
        self.watchdog.end_round()

    def _step(self, name: str, run: Callable[[], None]) -> None:
        """Run a step; switches are served before the next one if it took long."""
        self.watchdog.step(name, run)
        self._slices()

    def _report(self, last: bool = False) -> None:
        """Pass the events since the last call to the action log, the API and the reporter.

        Args:
            last: whether the controller ends.
        """
        before, self._print_error = self._print_error, self._printer.trouble
        if self._print_error not in ("", before):
            self.fabric.tell(events.FileUnwritable("standard output", self._print_error))
        self.actions.tick()
        recent = self.fabric.take_events()
        for event in recent:
            self.actions.happened(event)
            if self.api:
                self.api.happened(event)
        self._reporter.report(recent, last)
        self._slices()
        if self._http and self.api:
            self._http.tick(self.api, has_event=bool(recent))
        if any(event.type is events.FabricComplete for event in recent):
            self._freeze()
        if last:
            self._printer.finish(END_PATIENCE)
            self._error_printer.finish(END_PATIENCE)

    def _freeze(self) -> None:
        """Exclude the objects of a complete build from garbage collection (`gc.freeze`), once.

        With a thousand switches a collection over them took 50 ms.
        """
        if self._frozen_identity != self.fabric.identity:
            self._frozen_identity = self.fabric.identity
            freeze()

    def _restart(self, member: ClusterMember) -> None:
        """Restart the process, as another controller leads: all pending work is dropped."""
        member.report_lapse()
        self._report()
        self.actions.finish(END_PATIENCE)
        self._report(last=True)
        if self._http:
            self._http.end()
        restart()

    def reload(self) -> None:
        """Read build, certificates and tokens again, at a SIGHUP; faults are only reported."""
        # Repairs go on while the action log waits for the disk.
        self._hub.spawn(self.watchdog.step, "reading the build again", self._reload_build)
        self.watchdog.step(
            "reading certificates again", partial(self._look_for_certificates, now=True)
        )
        if self.api:
            self.watchdog.step("reading tokens again", self.api.read_tokens_again)

    def _look_for_certificates(self, now: bool = False) -> None:
        """Begin to read certificates and revocation lists if they have changed, or in any case.

        What is wrong with those in use is reported.
        """
        if self.entrance.tls:
            self.entrance.tls.look(in_thread, now)
            for fault in self.entrance.tls.new_faults(time()):
                self.fabric.tell(events.CertificatesFaulty(fault.file, str(fault)))

    def _use_certificates(self) -> None:
        """Use the certificates and revocation lists that were read since the last call."""
        tls_files = self.entrance.tls
        if tls_files is None:
            return
        file = str(tls_files.tls.certificate)
        try:
            if tls_files.has_new():
                self.fabric.tell(events.CertificatesLoaded(file))
                self.entrance.end_revoked()
                if self._http:
                    self._http.renew_certificates(tls_files.contents)
        except (InputError, OSError) as error:
            reason = "; ".join(str(error).splitlines())
            self.fabric.tell(events.CertificatesKept(file, reason))

    def end(self, why: str) -> None:
        """End the controller, and report that in a last line.

        Args:
            why: the name of a signal.
        """
        self.watchdog.notify("STOPPING=1")
        if self.member:
            self.member.resign()
        self._report()  # earlier events come before the last line
        self._finish_files()
        self.fabric.tell(events.ControllerEnded(why))
        self._report(last=True)
        if self._http:
            self._http.end()

    def _finish_files(self) -> None:
        """Finish the writes of journal, history and action log; late ones are reported."""
        until = monotonic() + END_PATIENCE
        if self.member is None:
            self.mover.finish(END_PATIENCE)
        self.actions.finish(max(until - monotonic(), 0.0))

    def _reload_build(self) -> None:
        """Read the build again, and move the switches to it; this waits for the disk.

        Of several controllers only the leader does so. Another one would carry the move out when it
        becomes the leader, in a fabric that may have another build by then.
        """
        if self.member and self.member.state != "leader":
            leader = self.member.status()["leader"] or "none"
            reason = f"this controller does not lead ({leader} does); send SIGHUP to the leader"
            self.fabric.tell(events.NothingLoaded(self.fabric.identity, reason))
            return
        may_load = True
        try:
            with self.actions.recording(HANGUP, "reload", str(self.folder)):
                stamp, target = _stamp(self.folder), self._read_build()
                is_old = stamp == self._folder_stamp and not self._was_last_move_undone(target)
                may_load = self.member is None or not is_old
                if not may_load:
                    # The fabric may have got a newer build by `apply`, from another controller.
                    given = f"build {target.identity}, which was there when it was read last"
                    raise InputError.of("a new build in the folder", given)
                self.mover.prepare(target, self._hub.sleep)
                self.mover.move(target, True, HANGUP.name, all_or_none=False)
                # Not before: a build whose move is refused is still new at the next SIGHUP.
                self._folder_stamp = stamp
        except InputError as error:
            kind = events.BuildKept if may_load else events.NothingLoaded
            self.fabric.tell(kind(self.fabric.identity, str(error)))

    def _was_last_move_undone(self, target: Current) -> bool:
        """Whether the last move, perhaps one at the start, led to this build and was undone."""
        last = self.mover.rollout
        if last is None or last.state != "failed":
            return False
        return last.target.identity == target.identity


def _stamp(folder: Path) -> tuple[int, ...]:
    """A stamp that is another one once a build is written into the folder; () without a build."""
    try:
        stat = (folder / MANIFEST).stat()
    except OSError:
        return ()
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns


def _api_socket(settings: Settings, tell: Callable[[Event], None]) -> Any:
    """A socket for the management API; None without one.

    Raises:
        InputError: it was asked for, but cannot be had.
    """
    if settings.http is None:
        return None
    try:
        missing = [name for name in API_NEEDS if find_spec(name) is None]
        if missing:
            raise InputError.of(
                key=settings.http.option,
                required="the packages of the management API",
                given=f"no {' and no '.join(missing)} installed",
                todo=install_extra("http"),
            )
        return listening.listen_at(settings.http, API_BACKLOG)
    except InputError as error:
        if settings.http_needed:
            raise
        problem = error.problems[0]
        tell(events.ApiClosed(str(settings.http), f"{problem.given}; {problem.todo}"))
        return None


def _http_settings(settings: Settings) -> dict[str, Any]:
    """The settings for the HTTP process (`controller.management.http_process`)."""
    hosts = {"localhost", *settings.hosts}
    if settings.http:
        hosts.add(settings.http.host)
    return {
        "private": settings.token_to_read,
        # Against DNS rebinding. With TLS it needs no list: a page of another site cannot show a
        # certificate of its own name here.
        "hosts": None if settings.tls else sorted(host.lower() for host in hosts),
    }
