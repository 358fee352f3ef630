"""`polarfab push` to stand-ins of systems that cannot run here; stand_ins.py says what they are."""

import copy
import gc
import os
import re
import shutil
import signal
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from compilers.audit.expected_routes import ExpectedRoutes
from compilers.targets.devices.configured_device import ConfiguredDevice
from compilers.targets.devices.device_shell import DeviceError, DeviceShell
from compilers.targets.devices.napalm_device import NapalmDevice
from compilers.targets.frr.device import FrrDevice
from compilers.targets.node_systems import system_target
from compilers.targets.nxos.device import NxosDevice
from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.sonic.device import RESTART_PATIENCE, SonicDevice
from compilers.targets.system_names import hostname
from compilers.targets.target_lookup import target
from controller.devices import device_push, push_proof
from controller.devices.device_push import DevicePush, PushSettings
from controller.devices.push_rounds import PushRounds, RenderedBuild
from inventory.problems import InputError
from tests.compilers.routed import agreed, routed
from tests.compilers.update.makers import quadrics_link
from tests.compilers.update.updates import MINIMAL, build
from tests.controller.devices.stand_ins import SYSTEMS, Eos, Frr, Sections, Sonic, drivers

SMALL, BGP = "{family: polarfly, q: 2}", {"routing": "bgp"}
ALTERNATES = {"eos", "nxos", "junos", "sonic"}
"""Systems that share packets from hosts among ports."""
MANAGEMENT = {
    "eos": {"": ["ip route 192.0.2.0/24 Null0", "ip route 10.0.0.0/30 Ethernet9 192.0.2.7"]},
    "nxos": {"": ["ip route 192.0.2.0/24 Null0", "ip route 10.0.0.0/30 Ethernet1/9 192.0.2.7"]},
    "junos": [
        "routing-options static route 192.0.2.0/24 discard",
        "interfaces et-0/0/9 unit 0 family inet address 192.0.2.8/24",
        "routing-options static route 10.0.0.0/30 next-hop 192.0.2.7",
    ],
    "sonic": {
        "STATIC_ROUTE": {
            "default|192.0.2.0/24": {"blackhole": "true"},
            "10.0.0.9/32": {"nexthop": "192.0.2.7", "ifname": "eth0"},
        }
    },
}
"""What others left: a route of management, and one inside the fabric's pools."""


TEXTS, RENDERED = TemporaryDirectory(), {}


def rendered(system, build):
    """The text of a build, which is rendered once."""
    agreements = sorted(build.control.items())
    key = system, build.identity, id(build.tables), id(build.wiring), *agreements
    if key not in RENDERED:
        folder = Path(TEXTS.name) / str(len(RENDERED))
        target(system).render(build, folder)
        RENDERED[key] = folder, build  # what lives keeps its id
    return RENDERED[key][0]


class Site:
    """Devices of a system, and pushes to them."""

    def __init__(self, system, folder, monkeypatch):
        self.system, self.folder = system, folder
        build = routed("hyperx", sides="2x2", spread=system in ALTERNATES)
        self.build = replace(build, identity="0123456789abcdef")
        self.wire(self.build.wiring.names)
        monkeypatch.setattr(device_push, "DeviceShell", lambda reach: self.devices[reach[-1]])
        monkeypatch.setattr("napalm.get_network_driver", self.driver)
        monkeypatch.setattr(push_proof, "PROOF_PATIENCE", 0)
        monkeypatch.setattr("compilers.targets.sonic.device.RESTART_PATIENCE", 0)

    def wire(self, names):
        """Empty devices of these names."""
        self.devices = {name: self.empty(name) for name in names}

    def empty(self, name):
        stand_in, config = SYSTEMS.get(self.system, (Frr, dict))
        return stand_in(self.folder / "devices" / name, config())

    def driver(self, name):
        """NAPALM's, which reaches switches without an address by their host names."""
        return drivers({hostname(n): device for n, device in self.devices.items()})(name)

    def push(self, build=None, old=None, nodes=(), **settings):
        build = build or self.build
        out = self.folder / "out" / build.identity
        if not out.exists():
            shutil.copytree(rendered(self.system, build), out)
        given = old and RenderedBuild(old, self.folder / "out" / old.identity)
        settings = PushSettings("echo {node}", **settings)
        push = DevicePush(build, self.system, {}, out, settings, old=given)
        self.report = push.run(nodes)
        return {one.node: one for one in self.report.switches}


@pytest.fixture(params=SYSTEMS)
def site(request, tmp_path, monkeypatch):
    return Site(request.param, tmp_path, monkeypatch)


def states(found):
    return {one.state for one in found.values()}


def test_what_is_missing_comes_and_what_is_stale_goes(site):
    one, *_ = site.devices.values()
    one.config = copy.deepcopy(MANAGEMENT[site.system])
    dry = site.push(dry=True)
    assert one.config == MANAGEMENT[site.system]
    assert states(dry) == {"to do"}
    found = site.push()
    assert [s.error for s in found.values() if s.error] == []
    assert states(found) == {"pushed"}
    assert len(found[next(iter(found))].plan.remove) == 1
    assert "192.0.2.0/24" in str(one.config)
    for device in site.devices.values():
        assert device.before is None
        assert device.saved == device.config
    assert states(site.push()) == {"as built"}


def of_two_systems(first, second, tmp_path, monkeypatch):
    """Switches of two systems, in turn."""
    site = Site(first, tmp_path, monkeypatch)
    site.system, names = "", site.build.wiring.names
    systems = tuple((first, second)[v % 2] for v in range(len(names)))
    site.build = replace(site.build, systems=systems)
    for name, system in zip(names, systems, strict=True):
        stand_in, config = SYSTEMS[system]
        site.devices[name] = stand_in(tmp_path / "devices" / name, config())
    system_target(site.build).render(site.build, tmp_path / "out" / site.build.identity)
    return site


def test_each_switch_is_reached_as_its_system_is(tmp_path, monkeypatch):
    """EOS by NAPALM and SONiC by its shell, in one push."""
    site = of_two_systems("eos", "sonic", tmp_path, monkeypatch)
    found = site.push()
    assert [one.error for one in found.values() if one.error] == []
    assert states(found) == {"pushed"}
    assert site.report.target == "eos and sonic"
    assert states(site.push()) == {"as built"}


def test_lines_of_others_go_where_the_system_of_a_switch_can_tell_them(tmp_path, monkeypatch):
    site = of_two_systems("eos", "sonic", tmp_path, monkeypatch)
    site.push()
    eos, sonic, *_ = site.devices.values()
    section = next(name for name in eos.config if name.startswith("interface Ethernet"))
    eos.config[section].append("ip access-group a in")
    sonic.config["PORT_QOS_MAP"] = {"Ethernet0": {"pfc_enable": "3"}}
    found = site.push(overrule=frozenset({"lines"}))
    assert [one.error for one in found.values() if one.error] == []
    assert "ip access-group a in" not in eos.config[section]
    assert sonic.config["PORT_QOS_MAP"] == {"Ethernet0": {"pfc_enable": "3"}}


def test_a_switch_whose_tables_are_wrong_goes_back(site):
    site.push()
    one, *_ = site.devices.values()
    one.config = copy.deepcopy(one.config)
    before = copy.deepcopy(one.saved)
    one.spoiled = lambda routes: routes.popitem()
    found = site.push(stop_on=0)
    first = next(iter(found.values()))
    assert first.state == "failed"
    assert "1 routes are not the build's" in first.error
    assert ("it is not saved" in first.error) == (site.system == "sonic"), "NAPALM saves a commit"
    assert one.saved == before
    assert states({k: v for k, v in found.items() if v is not first}) == {"as built"}


def test_routes_of_other_protocols_in_the_pools(site):
    one, *_ = site.devices.values()
    site.push()
    other = {("main", "10.0.0.9/32"): [[("192.0.2.7", "other", 1)]]}
    one.spoiled = lambda routes: routes.update(other)
    one.log.clear()
    first, *others = site.push(stop_on=0).values()
    assert "in the fabric's address pools, given 10.0.0.9/32 in table main" in first.error
    assert {switch.state for switch in others} == {"as built"}
    assert not any("commit" in line or "apply" in line or "load" in line for line in one.log)


def test_a_switch_that_is_another_node_is_left_alone(site):
    site.push()
    one, other, *_ = site.devices
    site.devices[one], site.devices[other] = site.devices[other], site.devices[one]
    site.devices[one].log.clear()
    found = site.push(overrule=frozenset({"names"}), stop_on=0)
    assert f"required the switch {one}, given {other}; `management`" in found[one].error
    assert f"required the switch {other}, given {one}; `management`" in found[other].error
    log = "".join(site.devices[one].log)
    assert not any(word in log for word in ("commit", "apply", "load", "checkpoint"))


def test_a_name_that_is_no_nodes_goes_if_asked(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    one, *_ = site.devices
    site.devices[one].config = {"": ["hostname factory.example.net"]}
    assert "given factory.example.net; if this is" in site.push(stop_on=0)[one].error
    assert site.push(overrule=frozenset({"names"}), stop_on=0)[one].state == "pushed"
    assert "hostname sw-0" in site.devices[one].config[""]
    assert site.push()[one].state == "as built"


def test_the_names_of_a_linux_machine(tmp_path):
    device = FrrDevice(DeviceShell(("sh", "-c")), tmp_path, str(tmp_path), ())
    assert device.name() == os.uname().nodename
    (tmp_path / "polarfab").mkdir()
    (tmp_path / "polarfab" / "load.sh").write_text("#!/bin/sh\n# n3: build 0a. What FRR leaves.\n")
    assert device.name() == "n3"


def stale(site):
    """A fabric that carries packets, with a route on every switch that goes."""
    site.push()
    for device in site.devices.values():
        device.config[""].append("ip route 10.0.0.9/32 Ethernet9 192.0.2.7")


def loses_a_route(device):
    """As long as a change is not confirmed."""

    def spoil(routes):
        if device.before:
            del routes[next(place for place, choices in routes.items() if choices[0][0][1])]

    device.spoiled = spoil


def test_nothing_follows_a_failure(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    stale(site)
    one, *others = site.devices.values()
    loses_a_route(one)
    before = [copy.deepcopy(device.config) for device in others]
    first, *rest = site.push(batch=1).values()
    assert first.state == "failed"
    assert {switch.state for switch in rest} == {"to do"}
    assert [device.config for device in others] == before


def test_all_are_read_before_one_is_changed(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    *others, last = site.devices.values()
    last.reachable = lambda: False
    *rest, failed = site.push(batch=1).values()
    assert (failed.state, {switch.state for switch in rest}) == ("failed", {"to do"})
    assert all(device.config == {} for device in others)


def test_what_is_added_goes_back_where_routes_are_lost(tmp_path, monkeypatch):
    """And nobody in its batch loses a route after that."""
    site = Site("eos", tmp_path, monkeypatch)
    stale(site)
    for device in site.devices.values():
        device.config["interface Ethernet1"].pop(0)
    one, *others = site.devices.values()
    before = copy.deepcopy(one.config)
    loses_a_route(one)
    found = site.push(batch=7)
    assert next(iter(found.values())).state == "failed"
    assert one.config == before
    assert all("ip route 10.0.0.9/32 Ethernet9 192.0.2.7" in one.config[""] for one in others)


def test_what_is_confirmed_is_not_said_to_be_taken_back(tmp_path, monkeypatch):
    """NAPALM saves after it has confirmed, and a full disk takes nothing."""
    site = Site("eos", tmp_path, monkeypatch)
    one, *_ = site.devices.values()
    one.reachable = lambda: one.log[-1] != "write memory"
    first = next(iter(site.push(batch=1).values()))
    assert (first.state, one.before) == ("failed", None)
    assert first.error == "confirm_commit: no route to host"


def test_a_fabric_without_routes_is_pushed_at_once(tmp_path, monkeypatch):
    """A link is up when both its ends are configured: one switch alone would stay wrong."""
    site = Site("eos", tmp_path, monkeypatch)
    devices = site.devices.values()

    def linked(routes):
        if not all(one.config for one in devices):
            for place in [place for place, choices in routes.items() if choices[0][0][1]]:
                del routes[place]

    for device in devices:
        device.spoiled = linked
    assert states(site.push()) == {"pushed"}


def test_a_switch_that_is_cut_off_goes_back_by_itself(site):
    """It takes the change and then cannot be reached any more: the timer is all that is left.

    NX-OS has none: there `expire` is the roll-back that somebody types.
    """
    one, *_ = site.devices.values()
    one.config = copy.deepcopy(MANAGEMENT[site.system])
    one.reachable = lambda: one.before is None
    found = site.push()
    error = next(iter(found.values())).error
    assert re.fullmatch(
        ".*no route to host.*; the change (polarfab-.*|of NAPALM) is not taken back from here: "
        ".*no route to host",
        error,
    )
    one.reachable = lambda: True
    assert one.before == MANAGEMENT[site.system]
    one.expire()
    assert one.config == MANAGEMENT[site.system]


@pytest.mark.parametrize("wrong", [False, True])
def test_ctrl_c_ends_what_was_begun(wrong, tmp_path, monkeypatch):
    """It comes when a switch has lost a route and nobody has looked at its tables yet."""
    site = Site("eos", tmp_path, monkeypatch)
    one, *_ = site.devices.values()
    one.config = copy.deepcopy(MANAGEMENT["eos"])
    commit = one.commit

    def interrupted(config):
        commit(config)
        if MANAGEMENT["eos"][""][1] not in config[""]:
            one.spoiled = (lambda routes: routes.popitem()) if wrong else None
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    one.commit = interrupted
    gc.disable()  # an interrupt in a callback of the collector, which Hypothesis has, is lost
    try:
        first = next(iter(site.push().values()))
    finally:
        gc.enable()
    assert site.report.interrupted
    assert first.state == ("failed" if wrong else "pushed")
    assert one.before is None
    assert (MANAGEMENT["eos"][""][1] in one.config[""]) == wrong
    assert one.saved == one.config


def test_what_others_committed_is_not_rolled_back(tmp_path, monkeypatch):
    """Another user locks the candidate between the trial and the commit."""
    site = Site("junos", tmp_path, monkeypatch)
    one, *_ = site.devices.values()
    one.config = list(MANAGEMENT["junos"])
    one.commits = ("", []), ("", one.config)
    one.locked = True
    assert "locked by somebody" in next(iter(site.push().values())).error
    assert one.config == MANAGEMENT["junos"]


def test_a_change_that_has_gone_back_is_not_confirmed(tmp_path, monkeypatch):
    site = Site("junos", tmp_path, monkeypatch)
    one, *_ = site.devices.values()
    commit = one.commit_timed

    def hurried():
        commit()
        one.before = None

    one.commit_timed = hurried
    assert "gone back" in next(iter(site.push().values())).error


def test_the_timer_of_a_newer_eos_is_found(tmp_path, monkeypatch):
    """NAPALM before 5.1.1 does not find it: the change seems to have gone back."""
    site = Site("eos", tmp_path, monkeypatch)
    for one in site.devices.values():
        one.timer_beside_sessions = True
    found = site.push()
    assert [one.error for one in found.values() if one.error] == []
    assert all(one.before is None and one.saved == one.config for one in site.devices.values())


def test_without_a_checkpoint_nothing_is_typed(tmp_path, monkeypatch):
    site = Site("nxos", tmp_path, monkeypatch)
    one, *_ = site.devices.values()
    one.full = True
    assert "ten checkpoints" in next(iter(site.push().values())).error
    assert one.config == {}


def test_what_the_saved_frr_conf_would_lose(tmp_path, monkeypatch):
    site = Site("sonic", tmp_path, monkeypatch)
    one, other, *_ = site.devices.values()
    one.frr = "router bgp 65100\n neighbor 192.0.2.7 remote-as 65000\nexit\nip route ::/0 Null0\n"
    other.files["/etc/sonic/frr/frr.conf"] = "hostname x\n!\nip route 192.0.2.0/24 Null0\n"
    first, second, *rest = site.push(stop_on=0).values()
    assert "given neighbor 192.0.2.7 remote-as 65000; take them away first" in first.error
    assert "given ip route 192.0.2.0/24 Null0; take" in second.error
    assert {switch.state for switch in rest} == {"pushed"}
    assert one.config == other.config == {}


def test_sonic_starts_again_after_a_push(tmp_path, monkeypatch):
    """What the container adds to frr.conf at each start is nobody's configuration."""
    site = Site("sonic", tmp_path, monkeypatch)
    assert states(site.push()) == {"pushed"}
    for device in site.devices.values():
        device.start()
    assert states(site.push()) == {"as built"}
    one, *_ = site.devices.values()
    one.files["/etc/sonic/frr/frr.conf"] = "no fpm use-next-hop-groups\nfpm address 127.0.0.1\n"
    assert states(site.push()) == {"as built", "pushed"}


def test_lines_of_users_in_frr_conf_stay_on_sonic(tmp_path, monkeypatch):
    site = Site("sonic", tmp_path, monkeypatch)
    name, one = next(iter(site.devices.items()))
    users = "log syslog informational\npassword zebra\nenable password zebra\n"
    place = "/etc/sonic/frr/frr.conf"
    one.files[place] = f"hostname x\n{users}service integrated-vtysh-config\n"
    assert states(site.push()) == {"pushed"}
    for _ in range(2):
        text = one.files[place]
        assert users in text
        assert text.count("service integrated-vtysh-config\n") == text.count("hostname") == 1
        one.start()
        assert site.push()[name].state == "as built"


def speaker(folder, **made):
    """A shell of SONiC, and what makes it a device whose files have BGP."""
    build = routed(**made)
    target("sonic").render(agreed(build, BGP), folder / "out", only=[0])
    empty = {"DEVICE_METADATA": {"localhost": {"docker_routing_config_mode": "split-unified"}}}
    shell, pools = Sonic(folder / "device", empty), tuple(fabric_pools(build.addressing))
    files = folder / "out" / build.wiring.names[0]
    return shell, partial(SonicDevice, shell, files, "/etc", pools, bgp=True)


def carried_out(device):
    """What was planned, and is done."""
    plan = device.plan()
    device.type(plan.lines)
    device.confirm()
    device.save(plan.save)
    return plan


def test_a_push_leaves_the_file_of_a_drained_sonic(tmp_path):
    """FRR starts from it, drained if somebody saved it so; after --end it is the build's again."""
    one, make = speaker(tmp_path, q=2, spread=True)
    device = make()

    def push():
        plan = carried_out(device)
        assert not device.plan().lines
        return plan

    push()
    place, before = "/etc/sonic/frr/frr.conf", one.frr
    via = re.search(r"(?m)^  network 100\.127\.\S+/32\n", before)[0]
    one.frr = before.replace(via, "").replace(
        "route-map announced-ipv4 permit 10\n",
        "ip prefix-list own-ipv4 seq 5 permit 10.0.0.0/30\n"
        "route-map announced-ipv4 permit 5\n match ip address prefix-list own-ipv4\nexit\n"
        "route-map announced-ipv4 permit 10\n set as-path prepend 4200000000 4200000000\n",
    )
    plan = push()
    assert (plan.drained, plan.lines, one.started, one.files[place]) == (True, (), 1, before)
    one.files[place] = one.frr  # `write memory`
    plan = push()
    assert (plan.kept, plan.lines) == (("frr.conf: waits for the end of the drain",), ())
    one.start()
    assert via not in one.frr
    one.frr = before
    assert push().lines == (f"write {place}", "systemctl restart bgp")
    assert (one.frr, one.started) == (before, 3)


def test_what_a_system_cannot_overrule_is_refused(tmp_path, monkeypatch):
    """No dry run and no push without a word, as if others' lines had been taken out."""
    site = Site("sonic", tmp_path, monkeypatch)
    with pytest.raises(InputError, match="overrule: required names, ports, given lines"):
        site.push(overrule=frozenset({"lines"}), dry=True)


def test_lines_of_others_go_from_frr_where_that_is_asked_for(tmp_path, monkeypatch):
    site = Site("frr", tmp_path, monkeypatch)
    assert states(site.push()) == {"pushed"}
    name, one = next(iter(site.devices.items()))
    section = next(s for s in one.config if s.startswith("interface eth1"))
    one.config[section].append("ip ospf cost 7")
    assert "ip ospf cost 7" in " ".join(site.push()[name].kept)
    found = site.push(overrule=frozenset({"lines"}))[name]
    assert (found.state, found.error) == ("pushed", "")
    assert "ip ospf cost 7" not in str(one.config)


def speaking(tmp_path, monkeypatch):
    """SONiC whose BGP finds the routes of the build."""
    site = Site("sonic", tmp_path, monkeypatch)
    site.build = replace(agreed(routed("hyperx", sides="2x2"), BGP), identity="0123456789abcdef")
    system = target("sonic")
    build, chosen = system.check(site.build)
    held = system.routes_held(build, chosen)
    for vertex, device in enumerate(site.devices.values()):
        device.learned = {
            (table, prefix): choices
            for table, routes in held(vertex).items()
            for prefix, choices in routes.items()
        }
    return site


def test_sonic_speaks_bgp_and_bfd_after_a_push(tmp_path, monkeypatch):
    site = speaking(tmp_path, monkeypatch)
    found = site.push()
    assert [one.error for one in found.values() if one.error] == []
    for device in site.devices.values():
        assert {"bgpd", "bfdd"} <= device.daemons
        assert device.started == 1
        assert "router bgp" in device.frr
    for device in site.devices.values():  # as FRR 8.4 shows it
        device.frr = re.sub(
            r"^( neighbor \S+ bfd)( profile .*)", r"\1\n\1\2", device.frr, flags=re.M
        )
    assert states(site.push()) == {"as built"}
    assert {device.started for device in site.devices.values()} == {1}


class Clock:
    """A clock that only sleeping moves."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_push_waits_for_the_sessions_of_sonic_after_a_restart(tmp_path, monkeypatch):
    """It failed after 10 s, and undid the change."""
    site, clock = speaking(tmp_path, monkeypatch), Clock()
    monkeypatch.setattr(push_proof, "time", clock)
    monkeypatch.setattr("compilers.targets.sonic.device.RESTART_PATIENCE", RESTART_PATIENCE)
    name, one = next(iter(site.devices.items()))
    sessions_up = 237.0  # the last one, as a log of sonic-mgmt has it

    def spoil(routes):
        for key in (
            [*one.learned][1:] if "router bgp" in one.frr and clock.now < sessions_up else ()
        ):
            del routes[key]

    one.spoiled = spoil
    found = site.push(nodes=[name])[name]
    assert (found.state, found.error) == ("pushed", "")
    assert clock.now == sessions_up


def test_bgp_of_sonic_starts_again_though_a_push_was_cut_off(tmp_path, monkeypatch):
    """No frr.conf is written that BGP does not start from: the next push would not see it."""
    site = speaking(tmp_path, monkeypatch)
    name, one = next(iter(site.devices.items()))
    one.reachable = lambda: "\nsystemctl restart bgp" not in one.log[-1]
    assert site.push(nodes=[name])[name].state == "failed"
    assert "systemctl restart bgp" in one.log[-1]
    one.reachable = lambda: True
    found = site.push(nodes=[name])[name]
    assert (found.state, found.error, "router bgp" in one.frr) == ("pushed", "", True)
    assert site.push(nodes=[name])[name].state == "as built"
    assert (one.started, one.timers) == (1, {})


def test_routes_of_bgp_around_a_shut_port_are_proved(tmp_path, monkeypatch):
    """Those that BGP finds without its cable; any other is a difference, at other switches, too."""
    site = Site("sonic", tmp_path, monkeypatch)
    build = agreed(routed("hyperx", sides="2x2"), BGP)
    site.build = build = replace(build, identity="0123456789abcdef")
    names, last = build.wiring.names, len(build.wiring.names) - 1
    site.wire(names)
    system = target("sonic")
    named, chosen = system.check(build)
    held = [system.routes_held(named, chosen)(v) for v in range(len(names))]

    def learn(left):
        for vertex, (name, device) in enumerate(site.devices.items()):
            found = device.learned = {}
            for table, routes in held[vertex].items():
                via = {(port, ":" in p): gate for p, (w,) in routes.items() for gate, port, _ in w}
                for prefix, (hops,) in routes.items():
                    ports = left.get(name, {}).get(prefix, {port for _, port, _ in hops})
                    next_hops = [(via[port, ":" in prefix], port, 1) for port in sorted(ports)]
                    found[table, prefix] = [next_hops]

    learn({})
    assert states(site.push()) == {"pushed"}
    w = named.wiring
    port, far = w.port_name(last, int(w.port[last, 0])), int(w.far[last, 0])
    other = w.port_name(far, int(w.far_port[last, 0]))
    site.devices[names[last]].config["PORT"][port]["admin_status"] = "down"
    reader = system.reader(chosen)
    left = reader.ports_left(tmp_path / "out" / build.identity, {(names[last], port)})
    assert port not in set().union(*left[names[last]].values())
    assert other not in set().union(*left[names[far]].values())
    third = next(v for v in range(last) if v != far and v not in w.far[far])
    assert site.push(stop_on=0)[names[last]].state == "failed", "routes over it are still there"
    learn(left)
    found = site.push(batch=5)
    assert [one.error for one in found.values() if one.error] == []
    assert states(found) == {"as built"}
    kept = " ".join(found[names[last]].kept)
    assert re.search(r"(\d+) routes go around what is shut or drained: \1 proved, 0 not$", kept), (
        kept
    )
    some = site.push(nodes=[names[last], names[far]])
    assert states(some) == {"as built"}, [one.error for one in some.values()]
    assert all(re.search(r": 0 proved, [1-9]\d* not$", one.kept[-1]) for one in some.values())
    prefix = min(left[names[third]])
    wrong = set().union(*left[names[third]].values()) - left[names[third]][prefix]
    learn({**left, names[third]: {**left[names[third]], prefix: wrong}})
    assert site.push(stop_on=0)[names[third]].state == "failed"


def test_sonic_goes_back_to_the_sessions_that_it_had(tmp_path):
    shell, make = speaker(tmp_path, q=2)
    shell.files["/etc/sonic/frr/frr.conf"] = "hostname x\n"
    device = make()
    device.type(device.plan().lines)
    assert "router bgp" in shell.frr
    device.undo()
    assert shell.frr == "hostname x\nno fpm use-next-hop-groups\nfpm address 127.0.0.1\n"
    assert shell.started == 2
    assert "STATIC_ROUTE" not in shell.config


@pytest.mark.parametrize("back", ["undo", "expire", "next"])
def test_sonic_goes_back_where_frr_conf_alone_is_new(back, tmp_path):
    shell, make = speaker(tmp_path, q=2)
    carried_out(device := make())
    shell.files["/etc/sonic/frr/frr.conf"] = "hostname x\n"
    plan = device.plan()
    assert plan.lines == ("write /etc/sonic/frr/frr.conf", "systemctl restart bgp")
    device.type(plan.lines)
    assert "router bgp" in shell.frr
    if back == "next":
        device = make()
        plan = device.plan()
        assert (plan.lines, plan.save) == ((), device.save_commands), "the timer is running"
        device.save(plan.save)
        assert (device.plan().save, "router bgp" in shell.frr, shell.timers) == ((), True, {})
        return
    getattr(device if back == "undo" else shell, back)()
    assert "router bgp" not in shell.frr


def test_the_timer_of_a_push_that_was_cut_off_takes_no_later_push_back(tmp_path, monkeypatch):
    site = Site("sonic", tmp_path, monkeypatch)
    one, *_ = site.devices.values()
    one.config = copy.deepcopy(MANAGEMENT["sonic"])
    one.reachable = lambda: not one.timers
    assert states(site.push()) >= {"failed"}
    assert len(one.timers) == 1
    one.reachable = lambda: True
    assert states(site.push()) <= {"pushed", "as built"}
    held = copy.deepcopy(one.config)
    one.expire()
    assert one.config == held


def test_a_change_that_could_not_begin_is_not_said_to_stay(tmp_path, monkeypatch):
    site = Site("sonic", tmp_path, monkeypatch)
    one, *_ = site.devices.values()
    one.config = copy.deepcopy(MANAGEMENT["sonic"])

    def do(words):
        if words[:2] == ["config", "checkpoint"]:
            raise DeviceError("No space left on device")
        Sonic.do(one, words)

    one.do = do
    assert next(iter(site.push().values())).error == "No space left on device"
    assert one.config == MANAGEMENT["sonic"]


def test_fields_that_an_entry_had_go(tmp_path, monkeypatch):
    site = Site("sonic", tmp_path, monkeypatch)
    site.push()
    one, *_ = site.devices.values()
    routes = one.config["STATIC_ROUTE"]
    routes[next(key for key in routes if "nexthop" in routes[key])]["blackhole"] = "true"
    assert states(site.push()) == {"pushed", "as built"}
    assert states(site.push()) == {"as built"}


def test_what_shows_no_configuration_is_not_an_empty_switch(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    monkeypatch.setattr(Eos, "running", lambda _: "% Invalid input (privileged mode required)\n")
    errors = {one.error for one in site.push(dry=True).values()}
    assert len(errors) == 1
    assert "required a configuration, given % Invalid input" in errors.pop()


def lost(site):
    """The pairs of switches that do not reach each other by the text that the devices run."""
    named = target("eos").with_port_names(site.build, {})
    wiring, addressing = named.wiring, named.addressing
    ahead = {}
    for v, (name, device) in enumerate(site.devices.items()):
        if name not in site.shown or site.shown[name][0] != device.config:
            text = "".join(f"{line}\n" for line in device.config.get("", ()))
            pairs = re.findall(r"^ip route (\S+) (Ethernet\S+) \S+$", text, re.M)
            there = zip(wiring.port[v].tolist(), wiring.far[v].tolist(), strict=True)
            ports = {wiring.port_name(v, port): far for port, far in there if port}
            site.shown[name] = device.config, {p: ports[port] for p, port in pairs}
        ahead[v] = site.shown[name][1]
    wrong = []
    for end in range(len(ahead)):
        prefix = str(addressing.network(end))
        for start in ahead:
            at, hops = start, 0
            while at not in (end, None) and hops < 9:
                at, hops = ahead[at].get(prefix), hops + 1
            wrong += [(start, end)] * (at != end)
    return wrong


def rounds_of(site, monkeypatch):
    """The devices with an old build, and a new one; pairs are walked after every commit."""
    old = build(SMALL)
    new = build(SMALL, MINIMAL, tuple(quadrics_link(old)))
    site.build, site.shown, bad = old, {}, []
    site.wire(old.wiring.names)
    assert states(site.push(old)) == {"pushed"}
    stand_in, _ = SYSTEMS[site.system]
    commit = stand_in.commit

    def watched(device, config):
        commit(device, config)
        bad.extend(lost(site))

    monkeypatch.setattr(stand_in, "commit", watched)
    return old, new, bad


def test_rounds_from_a_known_build_lose_nothing(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    old, new, bad = rounds_of(site, monkeypatch)
    found = site.push(new, old)
    assert [one.error for one in found.values() if one.error] == []
    assert states(found) <= {"pushed", "as built"}
    assert not bad
    assert all(device.saved == device.config for device in site.devices.values())
    again = site.push(new, old)
    assert states(again) == {"as built"}
    site.push(old, new)
    assert not bad
    site.push(new, batch=1)
    assert bad, "without the old build nobody knows the order"


def test_rounds_go_on_where_they_stopped(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    old, new, bad = rounds_of(site, monkeypatch)
    changed = [n for n, one in site.push(new, old, dry=True).items() if one.add]
    last = site.devices[changed[-1]]
    last.reachable = lambda: "commit timer" not in last.log[-1]
    assert "failed" in states(site.push(new, old))
    last.reachable = lambda: True
    found = site.push(new, old)
    assert states(found) <= {"pushed", "as built"}
    assert not bad
    last.config[""].append("ip route 10.0.0.0/30 Ethernet9 192.0.2.7")
    assert "push without `from`" in site.push(old, new)[changed[-1]].error


def test_lines_that_go_in_rounds_are_confirmed_before_the_next_change(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    old, new, bad = rounds_of(site, monkeypatch)
    for device in site.devices.values():
        section = next(name for name in device.config if name.startswith("interface Ethernet"))
        device.config[section].append("ip access-group a in")
    found = site.push(new, old, overrule=frozenset({"lines"}))
    assert [one.error for one in found.values() if one.error] == []
    assert states(found) == {"pushed"}
    assert not bad


@pytest.mark.parametrize("system", ["eos", "nxos", "junos"])
def test_a_session_ends_with_the_push(system, tmp_path, monkeypatch):
    site = Site(system, tmp_path, monkeypatch)
    site.push(dry=True)
    assert {device.log.count("closed") for device in site.devices.values()} == {1}
    assert {device.log[-1] for device in site.devices.values()} == {"closed"}


@pytest.mark.parametrize("system", ["sonic", "frr"])
def test_rounds_end_with_the_shares_of_hosts(system, tmp_path, monkeypatch):
    site = Site(system, tmp_path, monkeypatch)
    repair = "link" if system == "frr" else "none"
    old = build(SMALL, ("compact-valiant", repair))
    new = build(SMALL, ("compact-valiant", "none"), tuple(quadrics_link(old)))
    site.wire(old.wiring.names)
    assert states(site.push(old)) == {"pushed"}
    found = site.push(new, old)
    assert [one.error for one in found.values() if one.error] == []
    assert states(found) <= {"pushed", "as built"}
    log = "".join(line for device in site.devices.values() for line in device.log)
    assert "sh /etc/polarfab/load.sh" not in log, "it takes all rules away for a moment"


def test_no_round_restarts_frr_to_turn_a_daemon_on(tmp_path, monkeypatch):
    """FRR of all switches was restarted in the first round, and removed its routes."""
    site = Site("frr", tmp_path, monkeypatch)
    old, new = (agreed(b, {"bfd": "on"}) for b in (build(SMALL), build(SMALL, MINIMAL)))
    site.wire(old.wiring.names)
    shutil.copytree(rendered("frr", old), tmp_path / "out" / old.identity)
    for device in site.devices.values():
        device.files["/etc/frr/daemons"] = "bgpd=no\nbfdd=no\n"
    errors = {one.error for one in site.push(new, old, dry=True).values()}
    assert errors == {
        "required bgpd=yes, bfdd=yes in /etc/frr/daemons, given bgpd=no, bfdd=no; the change "
        "restarts routing, and loses packets: make it before, or push without `from`"
    }
    site.push(new, old)
    assert not any(device.config for device in site.devices.values())
    for device in site.devices.values():
        device.files["/etc/frr/daemons"] = "bgpd=yes\nbfdd=yes\n"
    assert not any("daemons" in one.error for one in site.push(new, old, dry=True).values())


def test_what_has_no_rounds(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    other = replace(routed(q=3), identity="1" * 16)
    target("eos").render(other, tmp_path / "out" / other.identity)
    with pytest.raises(InputError, match=r"links that lead to the same address in both builds"):
        site.push(old=other)
    by_bgp = replace(agreed(site.build, BGP), identity="2" * 16)
    with pytest.raises(InputError, match="required static routes in both builds, given eBGP"):
        site.push(old=by_bgp)
    site.system = "linux"
    with pytest.raises(InputError, match="numbered by build"):
        site.push(old=site.build)
    eos = target("eos")
    new, chosen = eos.check(site.build)
    expected, chosen = ExpectedRoutes.of(eos, new, chosen), {**chosen, "lossless": "pairs"}
    with pytest.raises(InputError, match="from: required lossless=off, given pairs: priorities"):
        PushRounds.of(eos, RenderedBuild(other, tmp_path), expected, chosen, {"lossless": "pairs"})


LAST_CUTS, EARLIER_CUTS = 8, 2


@pytest.mark.parametrize("system", [*SYSTEMS, "frr"])
def test_a_push_that_is_cut_off_anywhere_is_ended_by_the_next(system, tmp_path, monkeypatch):
    """What runs is saved then, no timer takes it back, and no port is said to be shut.

    Cut off after each of its last lines, and some before; sometimes the switch reboots.
    """
    site = Site(system, tmp_path, monkeypatch)
    name, seen = next(iter(site.devices)), set()

    def emptied():
        site.devices[name] = one = site.empty("cut")
        one.config = copy.deepcopy(MANAGEMENT.get(system, one.config))
        one.saved = copy.deepcopy(one.config)
        return one

    one = emptied()
    assert site.push(nodes=[name])[name].state == "pushed"
    lines = len(one.log)
    earlier = range(1, lines - LAST_CUTS, max(1, lines // EARLIER_CUTS))
    cases = [(cuts, number % 2 == 0) for number, cuts in enumerate(earlier)]
    cases += [(cuts, False) for cuts in range(lines - LAST_CUTS, lines + 1)]
    cases += [(lines - 6, True)]
    for cuts, reboots in cases:
        one = emptied()
        one.reachable = lambda one=one, cuts=cuts: len(one.log) <= cuts
        first = site.push(nodes=[name])[name]
        one.reachable = lambda: True
        if reboots:
            one.reboot()
        elif system in ("eos", "junos") and one.before is not None:
            assert "waits for its confirmation" in site.push(nodes=[name])[name].error
            one.expire()
        dry = site.push(nodes=[name], dry=True)[name]
        found = site.push(nodes=[name])[name]
        assert (found.error, found.kept, found.plan) == ("", (), dry.plan), cuts
        assert one.saved == one.config, cuts
        assert not getattr(one, "timers", None)
        held = copy.deepcopy(one.config)
        one.reboot()
        assert one.config == held
        last = site.push(nodes=[name])[name]
        assert (last.state, last.add, last.plan.save) == ("as built", (), ()), cuts
        seen.add((first.state, bool(found.add), bool(found.plan.save)))
    assert {state for state, *_ in seen} == {"failed", "pushed"}
    if system != "junos":
        assert ("failed", False, True) in seen, "it was to have the save alone, once"


@pytest.mark.parametrize("system", ["eos", "nxos"])
def test_a_drain_that_ended_after_it_was_saved_is_saved_again(system, tmp_path, monkeypatch):
    """A reboot would drain the switch; the drain that runs is not saved by a push."""
    site = Site(system, tmp_path, monkeypatch)
    site.push()
    name, one = next(iter(site.devices.items()))
    one.saved[""].append("route-map announced-ipv4 permit 5")
    found = site.push()[name]
    assert (found.state, found.plan.lines, bool(found.plan.save)) == ("pushed", (), True)
    assert one.saved == one.config
    one.config[""].append("route-map announced-ipv4 permit 5")
    assert site.push()[name].state == "as built"
    assert one.saved != one.config


def test_the_unit_of_another_build_is_replaced(tmp_path, monkeypatch):
    site = Site("frr", tmp_path, monkeypatch)
    site.push()
    name, one = next(iter(site.devices.items()))
    unit, one.unit = one.unit, "another build's\n"
    found = site.push()[name]
    assert (found.state, found.plan.lines, len(found.plan.save)) == ("pushed", (), 3)
    assert one.unit == unit


def test_a_file_that_frr_started_from_is_saved(tmp_path):
    """As Ansible copies it: FRR shows some of its lines in another form and order."""
    build = routed(q=2)
    target("frr").render(agreed(build, BGP), tmp_path, only=[0])
    files, pools = tmp_path / build.wiring.names[0], tuple(fabric_pools(build.addressing))
    device = FrrDevice(SimpleNamespace(), files, "/etc", pools, bgp=True)
    answers = {"cat /etc/frr/frr.conf 2>&- || true": device.text("frr.conf")}
    answers["vtysh -c 'show running-config'"] = device.rendered()
    device.shell.run = answers.__getitem__
    plan = ConfiguredDevice.plan(device)
    assert (plan.lines, plan.save) == ((), ())


def test_a_save_that_fails_is_a_failure(tmp_path, monkeypatch):
    """A full disk: the switch says so, and shows the old configuration as that of the start."""
    site = Site("nxos", tmp_path, monkeypatch)
    site.push()
    name, one = next(iter(site.devices.items()))
    one.saved, said = {}, one.send_command
    full = {"copy running-config startup-config": "Copy failed: no space left on device"}
    one.send_command = lambda line, **more: full.get(line) or said(line, **more)
    found = site.push(stop_on=0)[name]
    assert (found.state, "it has not taken copy running-config" in found.error) == ("failed", True)


WRITES = re.compile(
    r"commit|abort|write|copy|configure|checkpoint|load|rollback|config |HSET|batch|sysctl"
)


def written(site):
    """What a switch was told that could change it."""
    return [line for one in site.devices.values() for line in one.log if WRITES.search(line)]


def test_nothing_to_do_writes_nothing(site):
    assert states(site.push()) == {"pushed"}
    for device in site.devices.values():
        device.log.clear()
    assert states(site.push()) == {"as built"}
    assert written(site) == []


def test_what_a_dry_run_prints_is_what_a_push_types(site):
    one = next(iter(site.devices.values()))
    one.config = copy.deepcopy(MANAGEMENT[site.system])
    dry = site.push(dry=True)
    assert one.config == MANAGEMENT[site.system]
    one.log.clear()
    found = site.push()
    assert [switch.error for switch in found.values() if switch.error] == []
    for name, device in site.devices.items():
        assert dry[name].plan == found[name].plan
        log = [line.strip() for part in device.log for line in part.splitlines()]
        for line in "\n".join((*found[name].add, *found[name].plan.remove)).splitlines():
            place = line.removeprefix("write ")
            typed = line.strip() in log or place in device.files
            assert typed or f"load {line}" in log, line


SHUT = {
    "eos": lambda config: config["interface Ethernet1"].append("shutdown"),
    "nxos": lambda config: config["interface Ethernet1/1"].remove("no shutdown"),
    "junos": lambda config: config.append("interfaces et-0/0/0 disable"),
    "sonic": lambda config: config["PORT"]["Ethernet0"].update(admin_status="down"),
}


def without(port):
    """Tables of a switch whose port has no link."""

    def spoil(routes):
        for place in [p for p, c in routes.items() if any(h[1] == port for w in c for h in w)]:
            next_hops = [[hop for hop in settings if hop[1] != port] for settings in routes[place]]
            routes[place] = [settings for settings in next_hops if settings]
            if not routes[place]:
                del routes[place]

    return spoil


def test_a_port_that_is_shut_by_hand_stays_shut(site):
    """Also when something else is typed on the switch; nothing is expected over the port."""
    site.push()
    name, one = next(iter(site.devices.items()))
    SHUT[site.system](one.config)
    before = unordered(one.config)
    build = target(site.system).with_port_names(site.build, {})
    one.spoiled = without(build.wiring.port_name(0, 1))
    push = partial(site.push, nodes=[name])
    assert (push(dry=True)[name].state, push()[name].state) == ("as built", "as built")
    assert "is shut" in (kept := str(push()[name].kept)) or "disable" in kept
    assert unordered(one.config) == before
    spoil_description(one, site.system)
    found = push()[name]
    assert (found.state, found.error) == ("pushed", "")
    assert "shutdown" not in " ".join(found.add)
    assert unordered(one.config) == before
    one.spoiled = None
    found = push(overrule=frozenset({"ports"}))[name]
    assert (found.state, found.kept) == ("pushed", ())
    assert push()[name].state == "as built"


def unordered(config):
    """The order of lines is nothing to do."""
    if isinstance(config, list):
        return sorted(config)
    return {k: sorted(v) if isinstance(v, list) else copy.deepcopy(v) for k, v in config.items()}


def spoil_description(device, system):
    """Something that a push types again: the description of the second port."""
    config = device.config
    if system == "sonic":
        config["PORT"]["Ethernet4"]["description"] = "other"
    elif system == "junos":
        device.config = [line for line in config if not line.startswith("interfaces et-0/0/1 desc")]
    else:
        section = {"eos": "interface Ethernet2", "nxos": "interface Ethernet1/2"}[system]
        config[section][0] = "description other"


def test_a_port_that_a_push_did_not_reach_is_not_shut_by_hand(tmp_path, monkeypatch):
    """Its line is in the file that was written first; one that it did reach is shut by hand."""
    site = Site("frr", tmp_path, monkeypatch)
    name, one = next(iter(site.devices.items()))
    run = one.kernel.run

    def cut(command, text):
        if "-batch -" in command and "link set eth1 up" in text:
            raise DeviceError("no route to host")
        return run(command, text)

    one.kernel.run = cut
    assert site.push()[name].state == "failed"
    one.kernel.run = run
    assert (site.push()[name].kept, one.kernel.links["eth1"]["flags"]) == ((), ["UP"])
    one.kernel.links["eth1"]["flags"] = []
    assert "port eth1 is shut" in site.push(dry=True)[name].kept


@pytest.mark.parametrize("system", ["eos", "nxos", "junos"])
def test_lines_of_others_are_shown_and_stay(system, tmp_path, monkeypatch):
    site = Site(system, tmp_path, monkeypatch)
    site.push()
    name, one = next(iter(site.devices.items()))
    if system == "junos":
        line = "interfaces et-0/0/0 unit 0 family inet mtu 1400"
        one.config.append(line)
    else:
        section, line = "interface Ethernet1" + "/1" * (system == "nxos"), "ip access-group a in"
        one.config[section].append(line)
        one.config["router ospf 1"] = ["network 192.0.2.0/24 area 0"]
    found = site.push()[name]
    assert found.state == "as built"
    assert line in " ".join(found.kept)
    assert ("router ospf 1" in found.kept) == (system != "junos")
    found = site.push(overrule=frozenset({"lines"}))[name]
    assert (found.state, found.error) == ("pushed", "")
    assert line not in str(one.config)
    assert ("router ospf 1" in one.config) == (system != "junos")


@pytest.mark.parametrize("system", ["nxos", "frr"])
def test_lines_that_are_not_taken_are_told(system, tmp_path, monkeypatch):
    """NX-OS may show them in another form; on FRR it is a failure, and nothing is saved."""
    site = Site(system, tmp_path, monkeypatch)
    put = Sections.put_line
    monkeypatch.setattr(
        Sections, "put_line", lambda d, c, line: "description" in line or put(d, c, line)
    )
    first = next(iter(site.push().values()))
    assert first.state == ("failed" if system == "frr" else "pushed")
    assert bool(site.devices[first.node].saved) == (system == "nxos")
    assert "it has not taken interface" in (first.error or first.kept[-1])


def test_a_line_that_the_device_refuses_changes_nothing(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    put = Sections.put_line
    monkeypatch.setattr(
        Sections, "put_line", lambda d, c, line: "Null0" not in line and put(d, c, line)
    )
    found = site.push(stop_on=0)
    assert all("load_merge_candidate: " in one.error for one in found.values())
    assert all(device.config == {} for device in site.devices.values())


def test_nxos_waits_for_ports_and_not_for_subinterfaces(monkeypatch):
    """Lines make a subinterface; a port that the hardware lacks is told before they are typed."""
    typed = []
    monkeypatch.setattr(NapalmDevice, "type", lambda _, lines: typed.extend(lines))
    monkeypatch.setattr(NxosDevice, "running", lambda _: "interface Ethernet1/1\n")
    device = object.__new__(NxosDevice)
    lines = ["interface Ethernet1/1", "interface Ethernet1/1.2", "  encapsulation dot1q 2"]
    device.type(lines)
    assert typed == lines
    with pytest.raises(DeviceError, match="no interface Ethernet1/9"):
        device.type(["interface Ethernet1/9"])
