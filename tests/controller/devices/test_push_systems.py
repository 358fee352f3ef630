"""`polarfab push` to stand-ins of systems that cannot run here; stand_ins.py says what they are."""

import copy
import os
import re
import signal
import threading
from dataclasses import replace

import pytest

from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.target_lookup import target
from controller.devices import device_push
from controller.devices.configured_device import EosDevice, FrrDevice
from controller.devices.device_push import DevicePush, PushWay
from controller.devices.device_shell import DeviceError, DeviceShell
from controller.devices.network_linux import SonicDevice
from controller.devices.push_rounds import PushRounds
from inventory.problems import InputError
from tests.compilers.routed import routed
from tests.compilers.update.makers import POLARFLY, quadrics_link
from tests.compilers.update.updates import MINIMAL, build
from tests.controller.devices.stand_ins import SYSTEMS, Eos, Frr, Junos, Sonic

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
    "srlinux": [
        "network-instance default next-hop-groups group other nexthop 1 ip-address 192.0.2.7",
        "network-instance default static-routes route 192.0.2.0/24 next-hop-group other",
        "network-instance default static-routes route 10.0.0.9/32 next-hop-group other",
    ],
    "sonic": {
        "STATIC_ROUTE": {
            "default|192.0.2.0/24": {"blackhole": "true"},
            "10.0.0.9/32": {"nexthop": "192.0.2.7", "ifname": "eth0"},
        }
    },
    "nvue": {
        "interface": {"eth0": {"ip": {"address": {"192.0.2.8/24": {}}}}},
        "vrf": {
            "default": {
                "router": {
                    "static": {
                        "192.0.2.0/24": {"via": {"192.0.2.7": {"type": "ipv4-address"}}},
                        "10.0.0.0/30": {"via": {"192.0.2.7": {"type": "ipv4-address"}}},
                    }
                }
            }
        },
    },
}
"""What others left: a route of management, and one inside the fabric's pools."""


class Site:
    """Devices of a system, and pushes to them."""

    def __init__(self, system, folder, monkeypatch, **options):
        self.system, self.folder, self.options = system, folder, options
        self.build = replace(routed(q=2, spread=system in ALTERNATES), identity="0123456789abcdef")
        stand_in, empty = SYSTEMS.get(system, SYSTEMS["eos"])
        self.devices = {
            name: stand_in(folder / "devices" / name, empty()) for name in self.build.wiring.names
        }
        monkeypatch.setattr(device_push, "DeviceShell", lambda reach: self.devices[reach[-1]])
        monkeypatch.setattr(device_push, "PROOF_PATIENCE", 0)

    def push(self, build=None, old=None, **way):
        build = build or self.build
        out = self.folder / "out" / build.identity
        if not out.exists():
            target(self.system).render(build, out, options=self.options)
        given = old and (old, self.folder / "out" / old.identity)
        way = PushWay("echo {node}", **way)
        push = DevicePush(build, self.system, self.options, out, way, old=given)
        self.report = push.run()
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
    assert len(found[next(iter(found))].remove) == 1
    assert "192.0.2.0/24" in str(one.config)
    for device in site.devices.values():
        assert device.before is None
        assert device.saved == device.config
    assert states(site.push()) == {"as built"}


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
    found = site.push(rename=True, stop_on=0)
    assert f"required the switch {one}, given {other}; `management`" in found[one].error
    assert f"required the switch {other}, given {one}; `management`" in found[other].error
    log = "".join(site.devices[one].log)
    assert not any(word in log for word in ("commit", "apply", "load", "checkpoint"))


def test_a_name_that_is_no_nodes_goes_if_asked(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    one, *_ = site.devices
    site.devices[one].config = {"": ["hostname factory.example.net"]}
    assert "given factory.example.net; if this is" in site.push(stop_on=0)[one].error
    assert site.push(rename=True, stop_on=0)[one].state == "pushed"
    assert "hostname sw-0" in site.devices[one].config[""]
    assert site.push()[one].state == "as built"


def test_the_names_of_a_linux_machine(tmp_path):
    device = FrrDevice(DeviceShell(("sh", "-c")), tmp_path, str(tmp_path), ())
    assert device.names() == ("", os.uname().nodename)
    (tmp_path / "polarfab").mkdir()
    (tmp_path / "polarfab" / "load.sh").write_text("#!/bin/sh\n# n3: build 0a. What FRR leaves.\n")
    assert device.names() == ("n3", os.uname().nodename)


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


def test_one_switch_goes_first_and_nothing_follows_a_failure(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    stale(site)
    one, *others = site.devices.values()
    loses_a_route(one)
    before = [copy.deepcopy(device.config) for device in others]
    first, *rest = site.push().values()
    assert first.state == "failed"
    assert {switch.state for switch in rest} == {"to do"}
    assert [device.config for device in others] == before


def test_what_is_added_goes_back_where_routes_are_lost(tmp_path, monkeypatch):
    """And nobody in its batch loses a route after that."""
    site = Site("eos", tmp_path, monkeypatch)
    stale(site)
    one, *others = site.devices.values()
    before = copy.deepcopy(one.config)
    loses_a_route(one)
    found = site.push(batch=7)
    assert next(iter(found.values())).state == "failed"
    assert one.config == before
    assert "no ip route 10.0.0.9" not in "".join(line for one in others for line in one.log)


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
        "no route to host; the change (polarfab-.*|revision) is not taken back from here: "
        "no route to host",
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
    removed = EosDevice.remove

    def interrupted(device, stale):
        removed(device, stale)
        if stale:
            one.spoiled = (lambda routes: routes.popitem()) if wrong else None
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    monkeypatch.setattr(EosDevice, "remove", interrupted)
    first = next(iter(site.push().values()))
    assert site.report.interrupted
    assert first.state == ("failed" if wrong else "pushed")
    assert one.before is None
    assert (MANAGEMENT["eos"][""][1] in one.config[""]) == wrong
    assert (one.saved == one.config) != wrong


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
    shown = Junos.run
    monkeypatch.setattr(
        Junos, "run", lambda d, c: "0  by root\n" if "system commit" in c else shown(d, c)
    )
    assert "gone back" in next(iter(site.push().values())).error


def test_without_a_checkpoint_nothing_is_typed(tmp_path, monkeypatch):
    site = Site("nxos", tmp_path, monkeypatch)
    one, *_ = site.devices.values()
    one.full = True
    assert "ten checkpoints" in next(iter(site.push().values())).error
    assert one.config == {}


def test_nxos_enters_each_interface_from_the_top(tmp_path, monkeypatch):
    site = Site("nxos", tmp_path, monkeypatch)
    site.push()
    typed = "".join(log for one in site.devices.values() for log in one.log)
    assert "\ninterface " in typed
    assert len(re.findall(r"^interface ", typed, re.M)) == len(
        re.findall(r"^end\nconfigure terminal\ninterface ", typed, re.M)
    )


def test_what_the_saved_frr_conf_would_lose(tmp_path, monkeypatch):
    site = Site("sonic", tmp_path, monkeypatch)
    one, other, *_ = site.devices.values()
    one.frr = "router bgp 65100\n neighbor 192.0.2.7 remote-as 65000\nexit\nip route ::/0 Null0\n"
    other.files["/etc/sonic/frr/frr.conf"] = "hostname x\n!\nip route 192.0.2.0/24 Null0\n"
    first, second, *rest = site.push(stop_on=0).values()
    assert "given neighbor 192.0.2.7 remote-as 65000; take it away first" in first.error
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
    assert states(site.push()) == {"as built"}


def test_sonic_speaks_bgp_and_bfd_after_a_push(tmp_path, monkeypatch):
    site = Site("sonic", tmp_path, monkeypatch, routing="bgp")
    site.build = replace(routed(q=2), identity="0123456789abcdef")
    system = target("sonic")
    build, chosen = system.check(site.build, site.options)
    held = system.routes_held(build, chosen)
    for vertex, device in enumerate(site.devices.values()):
        device.learned = {
            (table, prefix): choices
            for table, routes in held(vertex).items()
            for prefix, choices in routes.items()
        }
    found = site.push()
    assert [one.error for one in found.values() if one.error] == []
    for device in site.devices.values():
        assert {"bgpd", "bfdd"} <= device.daemons
        assert device.started == 1
        assert "router bgp" in device.frr
    assert states(site.push()) == {"as built"}
    assert {device.started for device in site.devices.values()} == {1}


def test_sonic_goes_back_to_the_sessions_that_it_had(tmp_path):
    build = routed(q=2)
    target("sonic").render(build, tmp_path / "out", options={"routing": "bgp"}, only=[0])
    empty = {"DEVICE_METADATA": {"localhost": {"docker_routing_config_mode": "split-unified"}}}
    shell, pools = Sonic(tmp_path / "device", empty), tuple(fabric_pools(build.addressing))
    shell.files["/etc/sonic/frr/frr.conf"] = "hostname x\n"
    device = SonicDevice(shell, tmp_path / "out" / build.wiring.names[0], "/etc", pools)
    device.load(device.routes())
    assert "router bgp" in shell.frr
    device.undo()
    assert shell.frr == "hostname x\nno fpm use-next-hop-groups\nfpm address 127.0.0.1\n"
    assert shell.started == 2
    assert "STATIC_ROUTE" not in shell.config


def test_nvue_takes_all_routes_in_one_file(tmp_path, monkeypatch):
    site = Site("nvue", tmp_path, monkeypatch)
    site.push()
    log = "".join(line for device in site.devices.values() for line in device.log)
    assert "nv config patch" in log
    assert "nv set" not in log
    for device in site.devices.values():
        device.log.clear()
    assert states(site.push()) == {"as built"}
    log = "".join(line for device in site.devices.values() for line in device.log)
    assert "nv config apply" not in log


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
    monkeypatch.setattr(Eos, "run", lambda *_: "% Invalid input (privileged mode required)\n")
    errors = {one.error for one in site.push(dry=True).values()}
    assert len(errors) == 1
    assert "required a configuration, given % Invalid input" in errors.pop()


def test_tables_that_prove_nothing_are_found_before_a_change(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    monkeypatch.setattr(EosDevice, "held", ("show running-config",))
    found = site.push()
    assert {one.error for one in found.values()} == {
        "its routing tables: required JSON, given Expecting value in column 1"
    }
    assert all(device.config == {} for device in site.devices.values())


def test_a_script_runs_whole_and_keeps_its_lines(tmp_path):
    device = SonicDevice(DeviceShell(("sh", "-c")), tmp_path, "/etc", ())
    with pytest.raises(DeviceError, match="second"):
        device.script("cat", "echo second >&2; exit 3")


def test_an_answer_that_cannot_be_read(tmp_path, monkeypatch):
    site = Site("sonic", tmp_path, monkeypatch)
    monkeypatch.setattr(Sonic, "run", lambda *_: "hello")
    assert "cannot be read" in next(iter(site.push(dry=True).values())).error


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
    old = build(POLARFLY)
    new = build(POLARFLY, MINIMAL, tuple(quadrics_link(old)))
    site.build, site.shown, bad = old, {}, []
    stand_in, empty = SYSTEMS[site.system]
    site.devices = {n: stand_in(site.folder / "d" / n, empty()) for n in old.wiring.names}
    assert states(site.push(old)) == {"pushed"}
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
    last.reachable = lambda: "commit timer" not in last.log[-1] or "no ip" not in last.log[-1]
    assert "failed" in states(site.push(new, old))
    last.reachable = lambda: True
    found = site.push(new, old)
    assert states(found) <= {"pushed", "as built"}
    assert not bad
    last.config[""].append("ip route 10.0.0.0/30 Ethernet9 192.0.2.7")
    assert "push without --from" in site.push(old, new)[changed[-1]].error


@pytest.mark.parametrize("system", ["nxos", "junos", "sonic", "frr"])
def test_rounds_end_with_the_shares_of_hosts(system, tmp_path, monkeypatch):
    site = Site(system, tmp_path, monkeypatch)
    repair = "link" if system == "frr" else "none"
    old = build(POLARFLY, ("compact-valiant", repair))
    new = build(POLARFLY, ("compact-valiant", "none"), tuple(quadrics_link(old)))
    stand_in, empty = {"frr": (Frr, list), **SYSTEMS}[system]
    site.devices = {n: stand_in(tmp_path / n, empty()) for n in old.wiring.names}
    assert states(site.push(old)) == {"pushed"}
    found = site.push(new, old)
    assert [one.error for one in found.values() if one.error] == []
    assert states(found) <= {"pushed", "as built"}
    log = "".join(line for device in site.devices.values() for line in device.log)
    assert "sh /etc/polarfab/load.sh" not in log, "it takes all rules away for a moment"


def test_what_has_no_rounds(tmp_path, monkeypatch):
    site = Site("eos", tmp_path, monkeypatch)
    other = replace(routed(q=3), identity="1" * 16)
    target("eos").render(other, tmp_path / "out" / other.identity)
    with pytest.raises(InputError, match=r"links that lead to the same address in both builds"):
        site.push(old=other)
    site.system = "linux"
    with pytest.raises(InputError, match="numbered by build"):
        site.push(old=site.build)
    chosen = {"routing": "static", "lossless": "pairs"}
    with pytest.raises(InputError, match="--from: required lossless=off, given pairs: priorities"):
        PushRounds.of(target("eos"), other, tmp_path, site.build, chosen)
