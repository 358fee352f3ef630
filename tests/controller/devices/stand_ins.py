"""Stand-ins for systems that cannot run here: shells that keep a configuration in memory.

They take the commands that a push types, hold a change back until it is confirmed, and print their
tables in the form of the system from the configuration that they have. They know no more syntax
than that: what a real system says to these commands is not shown by them.
"""

import copy
import fnmatch
import json
import shlex
from hashlib import sha256
from types import SimpleNamespace

from lxml import etree

from compilers.targets.devices.device_shell import DeviceError, DeviceShell
from tests.compilers.audit import device_tables
from tests.compilers.audit.device_tables import PRINTERS


class StandIn:
    """A device; spoiled: a function that changes the routes that its tables show."""

    def __init__(self, folder, config):
        self.folder, self.config, self.saved = folder, config, copy.deepcopy(config)
        self.before, self.log, self.files, self.spoiled = None, [], {}, None
        self.reachable = lambda: True
        folder.mkdir(parents=True, exist_ok=True)

    def expire(self):
        """The timer of an unconfirmed change."""
        if self.before is not None:
            self.config, self.before = self.before, None

    def commit(self, config):
        assert self.before is None, "a change is waiting for its confirmation"
        self.before, self.config = self.config, config

    def put(self, folder, files, *then):
        self.answer("\n".join((f"put {folder}", *then)))
        self.files |= {f"{folder}/{name}": text for name, text in files.items()}
        for line in then:
            self.do(shlex.split(line))

    def reboot(self):
        """It starts from what was saved."""
        self.config, self.before = copy.deepcopy(self.saved), None

    def show(self, system, routes):
        if self.spoiled:
            self.spoiled(routes)
        return "\n".join(map(json.dumps, PRINTERS[system](routes)))

    script = DeviceShell.script

    def answer(self, line):
        self.log.append(line)
        if not self.reachable():
            raise DeviceError("no route to host")


class Sections(StandIn):
    """EOS and NX-OS: {section: lines}; a section is left by `exit`, or by the header of another."""

    system, file, section = "eos", "eos.cfg", ""
    hidden = "no shutdown"

    def running(self, config=None):
        """Lines that are usual are not shown, as on the device."""
        return "! a switch\n" + "".join(
            f"{section}\n" * bool(section)
            + "".join(f"{' ' * 3 * bool(section)}{one}\n" for one in lines if one != self.hidden)
            for section, lines in (self.config if config is None else config).items()
        )

    def tables(self):
        (self.folder / self.file).write_text(self.running())
        return self.show(self.system, device_tables.rendered(self.system, self.folder))

    def put_line(self, config, line):
        """Take a line; whether the system knows it."""
        words = line.split()
        body = " ".join(words)
        header = words[0] == "interface" or words[:2] in (["vrf", "context"], ["vrf", "instance"])
        if header and not body.startswith("interface breakout"):
            self.section = body
            config.setdefault(body, [])
            return True
        if words == ["exit"]:
            self.section = ""
            return True
        lines = config.setdefault(self.section, [])
        if body.startswith("no ") and body[3:] in lines:
            lines.remove(body[3:])
        elif body.startswith(("no ip route", "no ipv6 route")) or body.startswith("bogus"):
            return False
        once = words[0] if words[0] in ("hostname", "description") else None
        if once:
            lines[:] = [one for one in lines if not one.startswith(f"{once} ")]
        if body not in lines and not body.startswith(("no ip", "no description")):
            lines.append(body)
        return True


class Eos(Sections):
    """A node of pyeapi; `candidate` is what the session has.

    Since EOS 4.32 a timer stands beside the sessions, and no longer in one of them.
    """

    candidate = session = None
    timer_beside_sessions = False

    def run_commands(self, commands, **_):
        return [self.command(one if isinstance(one, str) else one["cmd"]) for one in commands]

    def command(self, line):
        self.answer(line)
        match line.split():
            case ["show", "version"]:
                return {"version": "4.30.1F", "uptime": 100.0}
            case ["show", "configuration", "sessions", *_]:
                if self.before is None:
                    return {"sessions": {}}
                if self.timer_beside_sessions:
                    timer = {"commitTimerSessionName": self.session, "commitTimerExpireTime": 700.0}
                    return {"sessions": {self.session: {"state": "completed"}}, **timer}
                held = {"state": "pendingCommitTimer", "commitBy": 700.0}
                return {"sessions": {self.session: held}}
            case ["show", "running-config"]:
                return {"output": self.running()}
            case ["show", "startup-config"]:
                return {"output": self.running(self.saved)}
            case ["show", "session-config", "named", _, "diffs"]:
                return {
                    "output": f"--- system\n+++ session\n{changes(self.config, self.candidate)}"
                }
            case ["show", "ip" | "ipv6" as family, "route", "vrf", "all"]:
                shown = self.tables().splitlines() if family == "ip" else []
                merged = {"vrfs": {}}
                for one in map(json.loads, shown):
                    for name, vrf in one["vrfs"].items():
                        there = merged["vrfs"].setdefault(name, {"routes": {}})
                        there["routes"] |= vrf["routes"]
                return merged
            case ["configure", "session", name]:
                self.candidate, self.session, self.section = copy.deepcopy(self.config), name, ""
            case ["configure", "session", _, "commit"]:
                self.before = None
            case ["configure", "session", _, "commit", "timer", _]:
                self.commit(self.candidate)
            case ["configure", "session", _, "abort"]:
                self.expire()
            case ["write", "memory"]:
                assert self.before is None
                self.saved = copy.deepcopy(self.config)
            case ["copy", *_] | ["end"]:
                pass
            case _:
                if not self.put_line(self.candidate, line):
                    from pyeapi.eapilib import CommandError

                    raise CommandError(1002, f"invalid command: {line}")
        return {"output": ""}


class Nxos(Sections):
    """A connection of Netmiko."""

    system, file, hidden, full = "nxos", "nxos.cfg", "shutdown", False

    def running(self, config=None):
        """Every port has a section, also one that nobody configured."""
        ports = (f"interface Ethernet1/{port}" for port in range(1, 41))
        there = self.config if config is None else config
        return super().running(config) + "".join(f"{one}\n" for one in ports if one not in there)

    def send_command(self, command, **_):
        self.answer(command)
        if "ipv6" in command:
            return ""
        if command.startswith("show running-config"):
            return self.running()
        if command == "show startup-config":
            return self.running(self.saved)
        if command == "copy running-config startup-config":
            self.saved = copy.deepcopy(self.config)
            return "Copy complete."
        return "rollback_config.txt" if command.startswith("dir ") else self.tables()

    def send_multiline(self, commands, **_):
        for command in commands:
            self.answer(command)
            match command.split():
                case ["checkpoint", "file", _] if self.full:
                    raise OSError("there are ten checkpoints already")
                case ["checkpoint", "file", _]:
                    self.before = self.checkpoint = copy.deepcopy(self.config)
                case ["rollback", "running-config", "file", _]:
                    self.config = copy.deepcopy(self.checkpoint)
        return "Rollback completed successfully."

    def send_config_set(self, commands):
        self.answer("\n".join(commands))
        self.section = ""
        said = [self.put_line(self.config, line) for line in commands]
        return "" if all(said) else "% Invalid command at '^' marker."

    def save_config(self):
        self.answer("copy running-config startup-config")
        self.saved, self.before = copy.deepcopy(self.config), None
        return "Copy complete."

    def set_base_prompt(self):
        """See Netmiko."""


class Junos(StandIn):
    """A device of PyEZ, with its candidate `cu`: a list of `set` commands.

    commits: (comment, configuration) of each, the last one last; locked: by somebody else.
    """

    once = ("preference", "host-name", "description")
    commits, locked, candidate, timeout = (("", []),), False, None, 0

    @property
    def cu(self):
        return self

    rpc = cu

    def get_config(self, **_):
        self.answer("get-config")
        return SimpleNamespace(text=self.running())

    def running(self):
        return "set version 1\n" + "".join(f"set {one}\n" for one in self.config)

    def get_commit_revision_information(self, **_):
        note = "<comment>commit confirmed, rollback in 10mins</comment>" * (self.before is not None)
        return etree.fromstring(f"<r><revision>re0-1</revision><date-time seconds='1'/>{note}</r>")

    def get_system_uptime_information(self):
        return etree.fromstring("<r><current-time><date-time seconds='2'/></current-time></r>")

    def lock(self):
        if self.locked:
            raise OSError("configuration database locked by somebody")

    def unlock(self):
        """See PyEZ."""

    def load(self, text, **_):
        self.answer(f"load {text}")
        self.candidate = list(self.config)
        for line in text.splitlines():
            self.change(line)

    def diff(self, **_):
        return changes({"": self.config}, {"": self.candidate})

    def rollback(self, rb_id, **_):
        self.answer(f"rollback {rb_id}")
        self.candidate = list(self.before if rb_id and self.before is not None else self.config)

    def commit(self, confirm=0, **_):
        self.answer(f"commit {confirm}")
        if confirm:
            self.commit_timed()
            return
        if self.before is not None and self.candidate == self.before:
            self.config = self.candidate
        self.before, self.saved = None, list(self.config)

    def commit_timed(self):
        StandIn.commit(self, self.candidate)

    def cli(self, command, **_):
        self.answer(command)
        (self.folder / "junos.set").write_text(self.running())
        return self.show("junos", device_tables.rendered("junos", self.folder))

    def change(self, line):
        word, _, rest = line.partition(" ")
        lines = self.candidate
        there = [one for one in lines if f"{one} ".startswith(f"{rest} ")]
        if word == "delete":
            for one in there:
                lines.remove(one)
            return
        assert word == "set", line
        words = rest.split()
        if any(leaf in words for leaf in self.once):
            leaf = next(n for n, one in enumerate(words) if one in self.once)
            path = " ".join(words[: leaf + 1])
            for one in [one for one in lines if one.startswith(f"{path} ")]:
                lines.remove(one)
        if rest not in lines:
            lines.append(rest)


def changes(before, after):
    """As a device shows them."""
    lines = [[f"{s} {one}" for s, part in tree.items() for one in part] for tree in (before, after)]
    gone = [f"-{one}" for one in lines[0] if one not in lines[1]]
    return "\n".join(gone + [f"+{one}" for one in lines[1] if one not in lines[0]])


DRIVERS = {"eos": "eos", "nxos": "nxos_ssh", "junos": "junos"}


def drivers(devices):
    """`get_network_driver` of NAPALM with these devices by address, under its own drivers.

    It is imported here: each worker that collects tests would take a second for it.
    """
    from napalm.base import get_network_driver
    from napalm.eos.utils.versions import EOSVersion

    def driver(name):
        real = get_network_driver(name)

        def made(address, user, password, optional_args):
            found = real(address, user, password, optional_args=optional_args)

            def opened():
                found.device = devices[address]
                found.device.answer("opened")
                if name == "eos":
                    found._eos_version = EOSVersion("4.30.1F")

            found.open, found._netmiko_device = opened, devices[address]
            found.close = lambda: devices[address].answer("closed")
            # Python's collector asks it of a driver of an earlier push, while another thread types.
            found.is_alive = lambda: {"is_alive": False}
            return found

        return made

    return driver


class Shell(StandIn):
    """A shell: scripts for `sh`, and commands that show something."""

    def run(self, command, text=""):
        self.answer(text or command)
        if command != "sh -se":
            return self.shown(command)
        opened, *lines, closed = text.splitlines()
        assert (opened, closed) == ("{", "} < /dev/null")
        for line in lines:
            self.do(shlex.split(line.removesuffix(" || true")))
        return ""


class Kernel:
    """What `ip` and `sysctl` see of a kernel: links by name, rules by family, settings."""

    def __init__(self):
        self.links, self.settings = {"lo": {"flags": [], "addr_info": []}}, {}
        self.rules = {"-4": [], "-6": []}

    def run(self, command, text):
        """The answer, None if it is no command of theirs."""
        words = command.split()
        if command == "ip -json -details address":
            return json.dumps([{"ifname": name} | link for name, link in self.links.items()])
        if words[:2] == ["ip", "-json"] and words[3:] == ["rule"]:
            return json.dumps(self.rules[words[2]])
        if "xargs grep" in command:
            return "".join(f"{k}:{self.settings.get(k, '?')}\n" for k in text.splitlines())
        if command.startswith("sysctl"):
            self.settings |= dict(line.split(" = ") for line in text.splitlines())
            return ""
        if "-batch -" not in command:
            return None
        for line in text.splitlines():
            self.type(words[1], line.split())
        return ""

    def type(self, family, words):
        match words:
            case ["rule", word, "iif", port, "lookup", table, "pref", pref, *_]:
                rule = {"iif": port, "table": table, "priority": int(pref), "protocol": "80"}
                getattr(self.rules[family], {"add": "append", "delete": "remove"}[word])(rule)
            case ["link", "add", name, *_]:
                self.links[name] = {"flags": [], "addr_info": []}
            case ["link", "set", name, *rest]:
                link = self.links.setdefault(name, {"flags": [], "addr_info": []})
                if rest[-1] == "up":
                    link["flags"] = ["UP"]
                names = {"alias": "ifalias"}
                pairs = zip(rest[::2], rest[1::2], strict=False)
                link |= {names.get(word, word): value for word, value in pairs}
            case ["address", "replace", address, "dev", name, *_]:
                local, _, length = address.partition("/")
                self.links[name]["addr_info"].append({"local": local, "prefixlen": int(length)})
            case _:
                raise AssertionError(words)


class Frr(Sections):
    """What is seen of FRR without its daemons; test_push_live.py has real ones."""

    system, file, hidden = "frr", "frr.conf", ""
    unit = ""

    def __init__(self, folder, config):
        super().__init__(folder, config)
        self.kernel = Kernel()

    def reboot(self):
        """systemd starts the unit if it is enabled: load.sh, with links.batch."""
        super().reboot()
        links, self.kernel = self.kernel.links, Kernel()
        self.kernel.links |= {name: {"flags": [], "addr_info": []} for name in links}
        text = self.files.get("/etc/polarfab/sysctl.conf", "") if self.unit else ""
        self.kernel.run("sysctl", "".join(f"{s}\n" for s in text.splitlines() if " = " in s))
        for name in ("links.batch", "addresses.batch", "rules.batch") if self.unit else ():
            lines = self.files.get(f"/etc/polarfab/{name}", "").splitlines()
            for line in (line for line in lines if line and not line.startswith("#")):
                for family in ("-4", "-6") if line.startswith("rule ") else ("-4",):
                    self.kernel.type(family, line.split())

    def put_line(self, config, line):
        """A next hop has one distance: the last that was typed."""
        words = line.split()
        table = words[words.index("table") :][:2] if "table" in words else []
        if words[1:2] == ["route"]:
            lines = config.setdefault("", [])
            lines[:] = [
                one
                for one in lines
                if one.split()[:5] != words[:5]
                or ("table" in one) != bool(table)
                or not set(table) <= set(one.split())
            ]
        return super().put_line(config, line)

    def run(self, command, text=""):
        self.answer(command)
        if (said := self.kernel.run(command, text)) is not None:
            return said
        match command.split()[:3]:
            case ["sh", "-se"]:
                for words in map(str.split, text.removeprefix("{\n").splitlines()):
                    self.answer(" ".join(words))
                    self.do(words)
            case ["if", "[", "!"]:
                return self.unit
            case ["vtysh", "-c", _] if "running" in command:
                return self.running()
            case ["vtysh", "-c", _]:
                return self.tables()
            case ["vtysh", "-f", file]:
                config, self.section = copy.deepcopy(self.config), ""
                assert all(self.put_line(config, line) for line in self.files[file].splitlines())
                self.commit(config)
                self.before = None
            case ["sha256sum", *_]:
                files = (item for item in self.files.items() if not item[0].endswith("vtysh.conf"))
                texts = ((place, text.rstrip("\n") + "\n") for place, text in files)
                return "".join(f"{sha256(t.encode()).hexdigest()}  {p}\n" for p, t in texts)
            case ["cat", "/etc/frr/frr.conf", *_]:
                return self.running(self.saved)
            case ["cat", file, *_]:
                return self.files.get(file, "")
        return ""

    def do(self, words):
        match words:
            case ["vtysh", "-c", "'write", "memory'"]:
                self.saved = copy.deepcopy(self.config)
            case ["cp", file, "/etc/systemd/system/polarfab.service"]:
                self.copied = self.files[file].rstrip("\n") + "\n"
            case ["systemctl", "enable", "polarfab"]:
                self.unit = self.copied


class Sonic(Shell):
    """frr: what FRR runs beside the static routes. learned: the routes that its BGP would find.

    `start` does what the container of FRR does (sonic-buildimage, dockers/docker-fpm-frr:
    docker_init.sh in mode split-unified, frr/supervisord/supervisord.conf.j2).
    """

    frr = ""
    started = 0
    daemons = frozenset()
    learned = None

    def __init__(self, *given):
        super().__init__(*given)
        self.timers = {}

    def reboot(self):
        super().reboot()
        self.timers = {}
        if "/etc/sonic/frr/frr.conf" in self.files and "DEVICE_METADATA" in self.config:
            self.start()

    def start(self):
        metadata = self.config["DEVICE_METADATA"]["localhost"]
        assert metadata["docker_routing_config_mode"] == "split-unified"
        text = self.files["/etc/sonic/frr/frr.conf"]
        if not any(line.startswith("no fpm use-next-hop-groups") for line in text.splitlines()):
            text += "no fpm use-next-hop-groups\nfpm address 127.0.0.1\n"
        self.files["/etc/sonic/frr/frr.conf"] = self.frr = text
        managed = metadata.get("frr_mgmt_framework_config") == "true"
        self.daemons = frozenset({"zebra", "staticd", "bgpd", *["bfdd"] * managed})
        self.started += 1

    def expire(self):
        """The timer of an unconfirmed change."""
        for lines in list(self.timers.values()):
            for line in lines:
                self.do(shlex.split(line))

    def shown(self, command):
        if command.startswith("cat /etc/sonic/frr/frr.conf"):
            return self.files.get("/etc/sonic/frr/frr.conf", "")
        if command.startswith("cat /etc/sonic/config_db.json"):
            return json.dumps(self.saved)
        if command.startswith("systemctl list-units"):
            return "".join(f"{name} loaded active waiting\n" for name in self.timers)
        if command == "vtysh -c 'show running-config'":
            return self.frr
        if command == "sonic-cfggen -d --print-data":
            return json.dumps(self.config)
        assert "APPL_DB" in command
        routes = {}
        for key, entry in self.config.get("STATIC_ROUTE", {}).items():
            vrf, _, prefix = key.rpartition("|")
            table = "main" if vrf in ("", "default") else vrf
            if entry.get("blackhole"):
                routes[table, prefix] = [[("discard", "", 1)]]
            else:
                next_hops = zip(
                    entry["nexthop"].split(","), entry["ifname"].split(","), strict=True
                )
                routes[table, prefix] = [[(*settings, 1) for settings in next_hops]]
        if self.learned and "router bgp" in self.frr:
            routes |= self.learned
        return self.show("sonic", routes)

    def do(self, words):
        match words:
            case ["systemctl", "restart", "bgp"]:
                self.start()
            case ["config", "checkpoint", _]:
                self.before = copy.deepcopy(self.config)
            case ["systemd-run", _, unit, "sh", "-c", text]:
                self.timers[unit.removeprefix("--unit=") + ".timer"] = text.split("; ")
            case ["touch", file]:
                self.files.setdefault(file, "")
            case ["cp", "-p", one, other]:
                self.files[other] = self.files[one]
            case ["mv", one, other]:
                self.files[other] = self.files.pop(one)
            case ["config", "rollback", _]:
                self.config = copy.deepcopy(self.before)
            case ["systemctl", "stop", pattern]:  # systemctl(1): a glob, of no unit at all, too
                for name in fnmatch.filter(self.timers, pattern):
                    del self.timers[name]
            case ["config", "delete-checkpoint", _]:
                self.before = None
            case ["sonic-db-cli", "CONFIG_DB", "HSET", key, *pairs]:
                name, _, entry = key.partition("|")
                values = dict(zip(pairs[::2], pairs[1::2], strict=True))
                values.pop("NULL", None)
                self.config.setdefault(name, {}).setdefault(entry, {}).update(values)
            case ["sonic-db-cli", "CONFIG_DB", "HDEL", key, *fields]:
                name, _, entry = key.partition("|")
                for one in fields:
                    del self.config[name][entry][one]
            case ["sonic-db-cli", "CONFIG_DB", "DEL", key]:
                name, _, entry = key.partition("|")
                del self.config[name][entry]
            case ["config", "save", "-y"]:
                self.saved = copy.deepcopy(self.config)
            case _:
                raise AssertionError(words)


SYSTEMS = {
    "eos": (Eos, dict),
    "nxos": (Nxos, dict),
    "junos": (Junos, list),
    "sonic": (Sonic, dict),
}
"""The stand-in of each system, and the configuration of an empty one."""
