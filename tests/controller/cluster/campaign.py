"""A seeded campaign of faults against a controller and real Open vSwitch, and what it leaves.

Events come in rounds (`campaign_plan`). While their faults last, packets have to pass around them
within the time that is stated for it. After each round everything is whole again, and every switch
must hold exactly the compiled program, whatever it went through.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx
import numpy as np

from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from compilers.tables.folders.folder_contents import identity_in
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from mininet_scenarios.ovs.openvswitch import OpenVSwitchError, PrivateOvs
from mininet_scenarios.ovs.ovsfabric import OvsFabric, port_interface
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.outage import Outage
from polarfab.controller_client import Client
from tests.compilers.targets.live_ovs import BRIDGE, dump
from tests.controller.cluster.campaign_plan import BY_HAND, FAULTS, OUTAGE, UNBOUNDED, Event
from tests.controller.cluster.crowd import Crowd, Papers
from tests.controller.cluster.meddler import COUNTED, Fault, Meddler
from tests.controller.makers import Running, polarfab
from tests.controller.unixctl import Unixctl
from tests.controller.upkeep.spliced_cable import SplicedCable
from tests.outages import outage
from tests.waiting import until

MORTAL = Path(__file__).parents[1] / "killed_thread.py"
OURS, OURS_MASK, OTHER_GENERATION = 0x5044, 0xFFFC, 0x5045
GROUPS, METADATA_BIT = 1024, 0x8000
FOREIGN = "table=9,priority=7,cookie=0x99,ip,nw_dst=192.0.2.{},actions=drop"
ALL_OURS = f"cookie={OURS << 48:#x}/{OURS_MASK << 48:#x}"
OVER = "cookie=0x98,table=0,priority=60000,actions=drop"
OPTIONS = ("--patience", "1", "--damping", "1,2200,1000,3", "--audit", "2")
"""Switches that are gone and links that flap are put aside, and back, while a round lasts; what was
changed by hand is left to the audit."""
FILES, IDLE = 400, 400
"""Files that the controller may open, and connections that want one of them."""
LIMIT = 40.0
"""Seconds in which everything must be right again on a machine with other work."""

AFTERWARDS = 5.0
"""Seconds after an outage of management in which nothing may be lost, either."""
MOVE_BEGINS = 2.0
"""Seconds in which a move has mostly begun, if it can."""


@dataclass(slots=True)
class Report:
    """What was tried: events by kind, what faults have done, and what was checked after rounds."""

    seed: int
    events: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    outages: list[tuple[int, int]] = field(default_factory=list)
    """The seconds of each outage of management, and how many switches it was about."""
    slowest: float = 0.0

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.events.total()} events; slowest {self.slowest:.1f} s"]
        for name in ("events", "faults", "checks"):
            found = sorted(getattr(self, name).items())
            lines.append(f"{name}: " + ", ".join(f"{kind} {count}" for kind, count in found))
        for size in sorted({size for _, size in self.outages}):
            lengths = sorted(seconds for seconds, about in self.outages if about == size)
            lines.append(f"seconds without management, {size} switches: {lengths}")
        return "\n".join(lines)


class Killable(PrivateOvs):
    """One whose switch can be killed; the database stays."""

    def kill_switch(self) -> None:
        """Kill it and start it anew: all bridges come back, without any rows."""
        daemon = self._daemons.pop()
        daemon.kill()
        daemon.wait()
        ends = list(self.folder.glob("*.mgmt"))
        for end in ends:
            end.unlink()
        self._spawn("ovs-vswitchd", f"unix:{self.socket}")
        until(lambda: all(end.exists() for end in ends), "all bridges are back")

    @property
    def control(self) -> Path:
        """The socket on which the switch takes commands of ovs-appctl."""
        return self.folder / f"ovs-vswitchd.{self._daemons[-1].pid}.ctl"


class Campaign:
    """A fabric of real switches, a meddler and a controller that is killed now and then.

    builds: folders of two builds of the same fabric. move_begins: seconds in which a move has to
    begin, if it can.
    """

    def __init__(
        self,
        ovs: Killable,
        builds: list[Path],
        work: Path,
        seed: int,
        move_begins: float = MOVE_BEGINS,
    ) -> None:
        self.ovs, self.builds, self.work, self.seed = ovs, builds, work, seed
        self.move_begins = move_begins
        self.chance = random.Random(seed)  # noqa: S311
        self.remove = seed % 2 == 0
        self.report = Report(seed)
        self.loaded = {load(folder).identity: folder for folder in builds}
        self.build = load(builds[0])
        self.fabric = OvsFabric(self.build, ovs, HostSample.of(self.build, 0))
        self.folder, self.wanted = work / "current", 0
        self.tokens = work / "tokens"
        self.tokens.write_text("a-token-of-the-campaign")
        self.tokens.chmod(0o600)
        self.papers = Papers(work)
        self.controller: Running | None = None
        self.starts = 0
        self.touched: set[int] = set()
        self.planted: dict[int, set[int]] = {}
        self.over: set[int] = set()
        self.limited: set[int] = set()
        self.hung: set[int] = set()
        self.dropping: set[tuple[int, str, str]] = set()
        self.spliced: SplicedCable | None = None
        self.open: set[int] = set()
        """Switches that may lack a row that checks sources, until all is put right."""
        self.discovers = True
        self.switches = range(self.build.tables.switches)
        self.expected = {b.identity: self._expected(b) for b in map(load, builds)}

    def run(self, rounds: Iterable[list[Event]], ports: Iterator[int]) -> Report:
        """All rounds; after each everything has to be right again."""
        (front, back, http) = (next(ports) for _ in range(3))
        self.port, self.url = back, f"127.0.0.1:{http}"
        self._put(0)
        self.crowd = Crowd(back, self.papers)
        with Meddler(front, back, self.papers.of(*self.switches)) as self.meddler:
            try:
                self._start()
                self.fabric.start(f"127.0.0.1:{front}")
                self._check("at the start")
                for number, events in enumerate(rounds):
                    for event in events:
                        self.report.events[event.kind] += 1
                        self._happen(event)
                        time.sleep(event.pause)
                    self._endures(events, f"in round {number}: {events}")
                    self._check(f"after round {number}: {events}")
                self._running.stop()
            finally:
                self.crowd.leave()
                if self.controller is not None:
                    self.controller.process.kill()
                    self.controller.process.wait()
            self.report.faults = self.meddler.done
        return self.report

    # The controller

    @property
    def _running(self) -> Running:
        assert self.controller is not None
        return self.controller

    @property
    def _api(self) -> Client:
        return Client.to(f"https://{self.url}", "URL", self.tokens, self.papers.authority)

    def _start(self) -> None:
        """On any framework, with discovery or without."""
        self.starts += 1
        options = [*OPTIONS, "--http", self.url, "--token-file", self.tokens]
        options += self.papers.options
        options += ["--foreign", "remove" if self.remove else "keep"]
        self.discovers = self.chance.random() >= 0.3
        options += [] if self.discovers else ["--no-discover"]
        (folder := self.work / f"controller-{self.starts}").mkdir()
        made = polarfab(self.folder, self.chance.choice(("ryu", "os-ken")), *options)

        def command(port: int, status_file: Path) -> list[Any]:
            _, *words = made(port, status_file)
            limited = ["prlimit", f"--nofile={FILES}:{FILES}", sys.executable]
            return [*limited, MORTAL, self.chance.choice(("ticks", "inbox")), *words]

        self.controller = Running(self.ovs, folder, command, port=self.port, bridges=())

    def _end(self, number: signal.Signals) -> None:
        if self.controller is None:
            return
        if number == signal.SIGKILL:
            self.controller.process.kill()
            self.controller.process.wait()
        elif self.controller.log.stat().st_size == 0:
            # It has only begun: before its first line it says nothing of a signal.
            self.controller.process.send_signal(number)
            assert self.controller.process.wait(20) in (0, -number, 128 + number)
        else:
            self.controller.stop(number)
        self.controller = None

    def _put(self, which: int) -> None:
        """Put a build in the controller's folder, whole at every moment but one."""
        shutil.copytree(self.builds[which], fresh := self.work / "fresh")
        if self.folder.exists():
            self.folder.rename(self.work / "old")
        fresh.rename(self.folder)
        shutil.rmtree(self.work / "old", ignore_errors=True)
        self.wanted = which

    # Events

    def _happen(self, event: Event) -> None:
        kind, v = event.kind, event.vertex
        if kind in ("row deleted", "row that ends by itself"):
            self.open.add(v)
        elif kind == "bytes flipped" and self.remove:  # any row may come of it
            self.open.update(self.switches)
        if kind in FAULTS:
            self.meddler.meddle(self._datapath_id(v), self._fault(event))
            if kind != "connection hung":
                self._stir(event)
            self.hung |= {v} if kind == "connection hung" else set()
        elif kind in BY_HAND:
            self._by_hand(event)
        elif kind == "table limited":
            table = ("--", "--id=@t", "create", "flow_table", "flow_limit=5")
            with suppress(OpenVSwitchError):  # the switch may be dark
                self.ovs.vsctl("set", "bridge", f"s{v}", "flow_tables:1=@t", *table)
                self.limited.add(v)
                self.ovs.ofctl("del-flows", f"s{v}", ALL_OURS)
        elif kind == "port set to drop":
            end, far = event.link
            k = int(np.flatnonzero(self.build.wiring.far[end] == far)[0])
            port = port_interface(end, int(self.build.wiring.port[end, k]))
            flag = ("no-forward", "no-receive")[event.chance % 2]
            with suppress(OpenVSwitchError):  # it may be cut
                self.ovs.ofctl("mod-port", f"s{end}", port, flag)
                self.dropping.add((end, port, flag.removeprefix("no-")))
        elif kind == "port flaps":
            self._flap(event)
        elif kind == "switch reboots":
            self._reboot(event)
        elif kind == OUTAGE:
            self._without_management(event)
        elif kind == "cable silent one way":
            self._silence(event)
        elif kind.startswith(("cable", "switch")):
            self._suffer(event)
        elif kind == "host forges its source":
            self._forge("while faults last")
        elif kind == "idle connections":
            self.crowd.idle(IDLE)
        elif kind == "impostor":
            self.crowd.impersonate(self._datapath_id(v), v)
        elif kind == "stolen certificate":
            other = event.link[event.link[0] == v]  # of another node
            if self.crowd.steal(self._datapath_id(v), other):
                self.report.checks["thieves sent away"] += 1
        elif kind == "thread killed":
            self._kill_thread()
        elif kind == "journal damaged":
            self._end(signal.SIGKILL)
            self.folder.with_name(f".{self.folder.name}.journal").write_text("{")
            self._start()
        elif kind == "Open vSwitch killed":
            self.ovs.kill_switch()
            self.planted.clear()
            self.over.clear()
        elif kind == "build changed":
            self._put(1 - self.wanted)
            if self.controller is not None:
                self.controller.process.send_signal(signal.SIGHUP)
        elif kind.startswith("controller"):
            if kind.endswith("in a move"):
                self._begin_move()
            self._end(signal.SIGTERM if kind.endswith("ended") else signal.SIGKILL)
            if event.chance % 2:
                self._start()
        else:
            raise ValueError(kind)

    def _kill_thread(self) -> None:
        """Kill a thread of the controller, which has to end by itself."""
        if self.controller is None:
            return
        process = self.controller.process
        process.send_signal(signal.SIGUSR1)
        try:
            code = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGUSR2)
            until(lambda: "most recent call first" in self._log_tail, "it tells its stacks", LIMIT)
            raise AssertionError(self._log_tail) from None
        assert code != 0
        assert "has stopped: " in self.controller.log.read_text(), self.controller.log
        self.controller = None

    @property
    def _log_tail(self) -> str:
        """The last lines that the controller has printed."""
        return self._running.log.read_text()[-4000:]

    def _begin_move(self) -> None:
        """Have the controller begin a move, if all is well enough for one."""
        self._put(1 - self.wanted)
        if self.controller is None:
            return
        self.controller.process.send_signal(signal.SIGHUP)
        with suppress(AssertionError):
            until(self._in_a_round, "a round has begun", self.move_begins)
            self.report.checks["killed in a round"] += 1

    def _in_a_round(self) -> bool:
        status = self._running.status()
        return bool(status and status["rollout"] and status["rollout"]["state"] == "forth")

    def _stir(self, event: Event) -> None:
        """Give the controller something to say to a switch, mostly."""
        if event.chance % 4:
            self.ovs.ofctl("del-flows", f"s{event.vertex}", ALL_OURS)
            self.touched.add(event.vertex)
        if event.chance % 4 == 1:
            self.meddler.cut(self._datapath_id(event.vertex))
        elif self.controller is not None:
            with suppress(InputError):  # it may not be connected
                self._api.post("reconcile", {"node": str(event.vertex)})

    def _fault(self, event: Event) -> Fault:
        chance = random.Random(event.chance)  # noqa: S311
        what = FAULTS[event.kind]
        if what == "hang":
            return Fault(what, to_switch=True, after=0)
        # What is garbled on its way to a switch may turn into rows of others.
        to_switch = what == "refuse" or (chance.random() < 0.5 and (what != "flip" or self.remove))
        counted = chance.choice([*COUNTED]) if what == "refuse" else "any"
        after = chance.choice((0, 0, 1, 3, 12) if counted in ("any", "flow-mod") else (0, 0, 1, 3))
        return Fault(what, to_switch, after, counted, chance.randrange(1 << 30))

    def _flap(self, event: Event) -> None:
        """Both ports of a link go and come back; `mod-port` does nothing to patch ports."""
        was = self.fabric.outage
        for _ in range(1 + event.chance % 3):
            cut = outage(self.build, [event.link])
            self.fabric.apply_outage(Outage(was.links | cut.links, was.switches))
            self.fabric.apply_outage(was)

    def _reboot(self, event: Event) -> None:
        """A switch goes and comes back without rows, again and again."""
        was = self.fabric.outage
        for _ in range(1 + event.chance % 4):
            dark = outage(self.build, switches=[event.vertex])
            self.fabric.apply_outage(Outage(was.links, was.switches | dark.switches))
            self.fabric.apply_outage(was)
        self._emptied(event.vertex)

    def _emptied(self, vertex: int) -> None:
        """A switch has been made anew."""
        self.planted.pop(vertex, None)
        self.over.discard(vertex)
        self.limited.discard(vertex)

    def _suffer(self, event: Event) -> None:
        was = self.fabric.outage
        if event.kind.startswith("cable"):
            changed = outage(self.build, [event.link])
        else:
            changed = outage(self.build, switches=[event.vertex])
            self._emptied(event.vertex)
        now = Outage(was.links ^ changed.links, was.switches ^ changed.switches)
        self.fabric.apply_outage(now)

    def _without_management(self, event: Event) -> None:
        """Switches have no management for a while; nothing is lost meanwhile, nor afterwards."""
        seconds, away = event.seconds, event.away
        self.meddler.management([self._datapath_id(v) for v in away])
        self._lose_nothing(seconds, f"without management for {seconds} s: {away}")
        self.meddler.management()
        self._lose_nothing(AFTERWARDS, f"after {seconds} s without management: {away}")
        self.report.outages.append((seconds, len(away)))

    def _lose_nothing(self, seconds: float, when: str) -> None:
        every = {(s, d) for s in self.switches for d in self.switches if s != d}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lost = every.copy()
            assert self._reach(lost), f"seed {self.seed}, {when}: {lost}"

    def _silence(self, event: Event) -> None:
        """A cable carries one direction only until the round is over; all ports stay up."""
        u, v = event.link if event.chance % 2 else event.link[::-1]
        if self.spliced is None and not self._ports(u, v) & {port for _, port, _ in self.dropping}:
            self.spliced = SplicedCable(self.ovs, self.build, u, v)
            self.spliced.carries(True, False)

    def _by_hand(self, event: Event) -> None:
        v, kind, bridge = event.vertex, event.kind, f"s{event.vertex}"
        held = [row for row in dump(self.ovs, bridge)["flows"] if _ours(row)]
        groups = re.findall(r"group_id=(\d+)", self.ovs.ofctl("dump-groups", bridge))
        if kind == "foreign row over ours":
            self.over.add(v)
            self.ovs.ofctl("add-flow", bridge, OVER)
        elif kind == "foreign row added":
            number = event.chance % 200
            self.planted.setdefault(v, set()).add(number)
            self.ovs.ofctl("add-flow", bridge, FOREIGN.format(number))
        elif kind == "row of ours added":
            row = f"table=1,priority=9,cookie={0x5046 << 48 | event.chance % 64:#x},ip,actions=drop"
            self.ovs.ofctl("add-flow", bridge, row)
        elif kind == "rows all deleted":
            self.ovs.ofctl("del-flows", bridge, ALL_OURS)
        elif kind == "group of ours added":
            number = 900 + event.chance % 100  # no program has so many
            with suppress(OpenVSwitchError):  # it is there already
                bad = f"group_id={number},type=indirect,bucket=actions=output:1"
                self.ovs.ofctl("add-group", bridge, bad)
        elif kind == "group deleted" and groups:
            self.ovs.ofctl("del-groups", bridge, f"group_id={groups[event.chance % len(groups)]}")
        elif kind == "group altered" and groups:
            number = groups[event.chance % len(groups)]
            bad = f"group_id={number},type=indirect,bucket=actions=output:999"
            with suppress(OpenVSwitchError):  # a move may have renumbered the groups that were read
                self.ovs.ofctl("mod-group", bridge, bad)
        elif held and kind.startswith("row"):
            row = held[event.chance % len(held)]
            place = re.sub(r"^cookie=\w+, | actions=.*$", "", row)
            if kind == "row that ends by itself":
                bad = f"{row.split(',')[0]},{place},hard_timeout=1,actions=drop"
                self.ovs.ofctl("add-flow", bridge, bad)
            elif kind == "row deleted":
                self.ovs.ofctl("--strict", "del-flows", bridge, place)
            else:
                self.ovs.ofctl("--strict", "mod-flows", bridge, f"{place},actions=drop")

    def _datapath_id(self, vertex: int) -> int:
        return int(self.build.wiring.datapath_id[vertex])

    # What must be so

    def _endures(self, events: list[Event], when: str) -> None:
        """While faults last: all pairs of switches that are themselves well come to reach each
        other, as far as cables are left. Not looked at where no time is stated: without a
        controller, after messages that were garbled on their way, under rows of others.
        """
        kinds = {event.kind for event in events}
        if self.controller is None or kinds & UNBOUNDED or (self.spliced and not self.discovers):
            return
        outage, amiss = self.fabric.outage, self.limited | self.hung
        dropping = {port for _, port, _ in self.dropping}
        dropping |= {*self.spliced.ends} if self.spliced else set()
        left = networkx.Graph()
        names = self.build.wiring.names
        left.add_nodes_from({v for v in self.switches if names[v] not in outage.switches} - amiss)
        for u, k in np.argwhere(self.build.wiring.far >= 0).tolist():
            link = u, int(self.build.wiring.far[u, k])
            named = names[link[0]], names[link[1]]
            cut = {named, named[::-1]} & outage.links or self._ports(*link) & dropping
            if not cut and {*link} <= left.nodes:
                left.add_edge(*link)
        parts = list(networkx.connected_components(left))
        pairs = {(s, d) for part in parts for s in part for d in part if s != d}
        try:
            until(lambda: self._reach(pairs), "pairs reach each other", LIMIT)
        except AssertionError as error:
            log = self._running.log.read_text()[-3000:]
            raise AssertionError(f"seed {self.seed}, {when}: {error}\n{pairs}\n{log}") from error
        self.report.checks["rounds endured"] += 1

    def _forge(self, when: str) -> None:
        """What hosts send in the name of others arrives nowhere, whatever happens to switches."""
        with Unixctl(self.ovs.control) as control:
            for s in {*self.fabric.powered()} - self.open:
                other, d = self.chance.sample([v for v in self.switches if v != s], 2)
                arrived, text = self._trace(control, s, d, other)
                assert not arrived, f"seed {self.seed}, {when}: {s} as {other} to {d}\n{text}"
                self.report.checks["forged sources dropped"] += 1

    def _ports(self, *link: int) -> set[str]:
        """The interfaces at both ends of a link."""
        w, found = self.build.wiring, set()
        for u, v in (link, link[::-1]):
            k = int(np.flatnonzero(w.far[u] == v)[0])
            found.add(port_interface(u, int(w.port[u, k])))
        return found

    def _reach(self, pairs: set[tuple[int, int]]) -> bool:
        """Whether a packet of each pair arrives; those whose packets do stay out."""
        with Unixctl(self.ovs.control) as control:
            pairs -= {(s, d) for s, d in sorted(pairs) if self._trace(control, s, d)[0]}
        return not pairs

    def _check(self, when: str) -> None:
        """Everything whole again: every switch comes to hold the program, and all pairs arrive.

        Only switches that a fault was to meet, or that have told an error, are asked to be read
        again; what was changed by hand is found by the audit.
        """
        began = time.monotonic()
        if self.spliced is not None:
            self.spliced.remove()
            self.spliced = None
        self.fabric.apply_outage(Outage())
        self.meddler.heal()
        self.hung.clear()
        self.crowd.leave()
        self._lift()
        if self.controller is None:
            self._start()
        wrong: dict[str, Any] = {}
        try:
            if self.over and not self.remove:
                until(lambda: self._shadowed(wrong), "rows over ours are told", LIMIT)
                for vertex in self.over:  # their owner takes them away
                    self.ovs.ofctl("del-flows", f"s{vertex}", "cookie=0x98/-1")
            self.over.clear()
            until(lambda: self._settled(wrong), "settled", LIMIT)
        except AssertionError as error:
            log = self._running.log.read_text()[-3000:]
            raise AssertionError(
                f"seed {self.seed}, {when}: {error}\n{wrong}\n{self.work}\n{log}"
            ) from error
        self.report.slowest = max(self.report.slowest, time.monotonic() - began)
        assert "Traceback" not in self._running.log.read_text(), self._running.log
        self.open.clear()
        self._forwards(when)
        self._forge(when)

    def _lift(self) -> None:
        """Tables hold what they should, and ports carry; the controller has seen the first."""
        if self.limited and self.controller is not None:
            names = {str(v) for v in self.limited}
            said = lambda: names.isdisjoint((self._running.status() or {})["programmed"])  # noqa: E731
            until(said, f"{names} are not in sync", LIMIT)
        for vertex in self.limited:
            self.ovs.vsctl("remove", "bridge", f"s{vertex}", "flow_tables", "1")
        for vertex, port, flag in self.dropping:
            with suppress(OpenVSwitchError):  # it is a new one by now
                self.ovs.ofctl("mod-port", f"s{vertex}", port, flag)
        self.limited.clear()
        self.dropping.clear()

    def _shadowed(self, wrong: dict[str, Any]) -> bool:
        """Whether the controller names the switches with rows of others over ours."""
        status = self._running.status()
        wrong["shadowed"] = status and status["shadowed"], sorted(self.over)
        return bool(status) and status["shadowed"] == {str(v): 1 for v in sorted(self.over)}

    def _settled(self, wrong: dict[str, Any]) -> bool:
        """Whether the controller says that all is well, and the switches agree."""
        status = self._running.status()
        wrong["status"] = status
        if not status:
            return False
        identity = identity_in(self.folder)
        moving = status["rollout"] and status["rollout"]["state"] not in ("done", "failed")
        if status["build"] != identity and not moving:
            self._running.process.send_signal(signal.SIGHUP)
            until(lambda: self._moved_on(status), "a reload is begun or refused", 10)
            return False
        errors = {int(name) for name in status["errors"]}
        asked = self.touched | errors
        for vertex in sorted(asked):
            try:
                self._api.post("reconcile", {"node": str(vertex)})
            except InputError:
                return False  # not connected yet
            self.touched.discard(vertex)
        links = status["links"]
        calm = not any(links[what] for what in ("down", "suppressed", "drained", "repairing"))
        if asked or moving or not calm or not status["complete"]:
            return False
        try:
            differs = {v: self._differs(v, identity)[:4] for v in self.switches}
        except OpenVSwitchError as error:  # a client that the machine holds a second is sent away
            wrong["different"] = str(error)
            return False
        wrong["different"] = {v: lines for v, lines in differs.items() if lines}
        return not wrong["different"]

    def _moved_on(self, before: dict[str, Any]) -> bool:
        return self._running.status() != before

    def _differs(self, vertex: int, identity: str) -> list[str]:
        """Lines of dumps that only one of the switch and the expectation has."""
        found, foreign = normal(dump(self.ovs, f"s{vertex}"))
        planted = set() if self.remove else self.planted.get(vertex, set())
        expected = {FOREIGN.format(n).split(",")[4] for n in planted}
        self.report.checks["switches compared"] += 1
        there = {match[0] for row in foreign if (match := re.search(r"nw_dst=[\d.]+", row))}
        over = [row for row in foreign if "cookie=0x98," in row]
        return sorted(found ^ self.expected[identity][vertex]) + sorted(there ^ expected) + over

    def _expected(self, build: Build) -> list[set[str]]:
        """What switches hold that were given the build as text by ovs-ofctl."""
        out = self.work / build.identity
        target("ovs").render(build, out)
        found = []
        self.ovs.vsctl("--may-exist", "add-br", "twin", "--", "set", "bridge", "twin", *BRIDGE)
        for name in build.wiring.names:
            self.ovs.ofctl("del-flows", "twin")
            self.ovs.ofctl("del-groups", "twin")
            self.ovs.ofctl("add-groups", "twin", str(out / name / "groups.txt"))
            self.ovs.ofctl("--bundle", "add-flows", "twin", str(out / name / "flows.txt"))
            found.append(normal(dump(self.ovs, "twin"))[0])
        return found

    def _forwards(self, when: str) -> None:
        """Packets from each switch's first host to each other's arrive, as switches trace them."""
        with Unixctl(self.ovs.control) as control:
            for s in self.switches:
                for d in self.switches:
                    if s == d:
                        continue
                    arrived, text = self._trace(control, s, d)
                    assert arrived, f"seed {self.seed}, {when}: {s} to {d}\n{text}"
                    self.report.checks["pairs traced"] += 1

    def _trace(
        self, control: Unixctl, s: int, d: int, source: int | None = None
    ) -> tuple[bool, str]:
        """Whether a packet between the first hosts of two switches arrives, and what it meets.

        source: the switch whose first host the packet says to be from; by default `s`.
        """
        a, w = self.build.addressing, self.build.wiring
        sender = a.host(s if source is None else source, 0)
        packet = (
            f"in_port={w.host_port[s, 0]},udp,dl_src={a.mac(s, 0)},"
            f"dl_dst=02:50:46:00:00:01,nw_src={sender},nw_dst={a.host(d, 0)},"
            f"nw_ttl=64,dp_hash={self.chance.randrange(1, 1 << 16)}"
        )
        text = control.call("ofproto/trace", f"s{s}", packet)
        passed = re.findall(r'^ *bridge\("(\w+)"\)', text, re.M)
        outputs = re.findall(r"^ *output:(\d+)", text, re.M)
        return (passed[-1], outputs[-1:]) == (f"s{d}", [str(w.host_port[d, 0])]), text


def _ours(row: str) -> bool:
    cookie = re.search(r"cookie=(0x\w+)", row)
    return cookie is not None and int(cookie[1], 16) >> 48 & OURS_MASK == OURS


def normal(dumped: dict[str, list[str]]) -> tuple[set[str], list[str]]:
    """Rows and groups of ours in the numbers of generation 0, but for discovery's; those of others.

    A number of the other generation, where the marker does not name it, stays different.
    """
    ours = [row for row in dumped["flows"] if _ours(row)]
    ours = [row for row in ours if "cookie=0x504600000000000d" not in row]
    marker = next((row for row in ours if f"cookie={OTHER_GENERATION:#x}" in row), None)

    def lower(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2]) - GROUPS}"

    def clear(found: re.Match[str]) -> str:
        number = int(found[2], 16) ^ METADATA_BIT
        return f"{found[1]}{number:#x}" if number else f"{found[1]}0"

    kept = ours + dumped["groups"]
    if marker is not None:
        kept = [re.sub(r"(group_id=|group:)(\d+)", lower, row) for row in kept]
        metadata = r"(metadata[:=])(0x\w+|0)(?=/0x(?:1?ffff|2c000))"
        kept = [re.sub(metadata, clear, row) for row in kept]
        kept = [row.replace(f"cookie={OTHER_GENERATION:#x}", "cookie=0x5047") for row in kept]
    assert len(kept) == len(set(kept))
    return set(kept), [row for row in dumped["flows"] if not _ours(row)]
