"""Stand-ins for systems that cannot run here: shells that keep a configuration in memory.

They take the commands that a push types, hold a change back until it is confirmed, and print their
tables in the form of the system from the configuration that they have. They know no more syntax
than that: what a real system says to these commands is not shown by them.
"""

import copy
import json
import shlex

import yaml

from controller.devices.device_shell import DeviceError
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

    def put(self, folder, files):
        self.files |= {f"{folder}/{name}": text for name, text in files.items()}

    def show(self, system, routes):
        if self.spoiled:
            self.spoiled(routes)
        return "\n".join(map(json.dumps, PRINTERS[system](routes)))

    def answer(self, line):
        self.log.append(line)
        if not self.reachable():
            raise DeviceError("no route to host")


class Typed(StandIn):
    """A command line; `candidate` is what is being changed."""

    candidate = None

    def typed(self, text):
        self.answer(text)
        return "\n".join(filter(None, map(self.word, text.splitlines())))


class Sections(Typed):
    """EOS and NX-OS: {section: lines}; a VRF's section takes routes until `exit`."""

    system, file = "eos", "eos.cfg"
    section = ""

    def run(self, command):
        self.answer(command)
        if command == "show running-config":
            return "! a switch\n" + "".join(
                f"{section}\n" * bool(section)
                + "".join(f"{' ' * 3 * bool(section)}{one}\n" for one in lines)
                for section, lines in self.config.items()
            )
        if "ipv6" in command:
            return ""
        (self.folder / self.file).write_text(self.run("show running-config"))
        return self.show(self.system, device_tables.rendered(self.system, self.folder))

    def put_line(self, config, line):
        words = line.split()
        if not words or words[0] == "!":
            return None
        if line[0] != " " and (
            words[0] == "interface" or words[:2] in (["vrf", "context"], ["vrf", "instance"])
        ):
            self.section = line
        elif words == ["exit"]:
            self.section = ""
        else:
            route = "route" in words[:3]
            top = line[0] != " " and not (route and self.section.startswith("vrf context"))
            lines = config.setdefault("" if top else self.section, [])
            body = " ".join(words)
            if words[0] == "hostname" and body not in lines:
                lines[:] = [one for one in lines if not one.startswith("hostname ")]
            if body.startswith("no ip") and body[3:] not in lines:
                return "% Invalid input"
            if body.startswith("no ip"):
                lines.remove(body[3:])
            elif body not in lines:
                lines.append(body)
        return None


class Eos(Sections):
    def word(self, line):
        match line.split():
            case ["configure", "session", _]:
                self.candidate, self.section = copy.deepcopy(self.config), ""
            case ["configure", "session", _, "commit"]:
                self.before = None
            case ["configure", "session", _, "abort"]:
                self.expire()
            case ["abort"]:
                self.candidate = None
            case ["commit", "timer", _]:
                self.commit(self.candidate)
            case ["write", "memory"]:
                assert self.before is None
                self.saved = copy.deepcopy(self.config)
            case _:
                return self.put_line(self.candidate, line)
        return None


class Nxos(Sections):
    system, file = "nxos", "nxos.cfg"
    full = False

    def word(self, line):
        match line.split():
            case ["checkpoint", _] if self.full:
                return "ERROR: there are ten checkpoints already"
            case ["checkpoint", _]:
                self.before = copy.deepcopy(self.config)
            case ["rollback", "running-config", "checkpoint", _]:
                self.expire()
            case ["no", "checkpoint", _]:
                self.before = None
            case ["configure", "terminal"] | ["end"]:
                self.section = ""
            case ["copy", "running-config", "startup-config"]:
                self.saved = copy.deepcopy(self.config)
            case _:
                return self.put_line(self.config, line)
        return None

    def expire(self):
        """There is no timer; a roll-back is asked for."""
        if self.before is not None:
            self.config = self.before


class Commands(Typed):
    """Junos and SR Linux: a list of `set` commands."""

    once = ()

    def change(self, line):
        word, _, rest = line.partition(" ")
        rest = rest.removeprefix("/ ")
        lines = self.candidate
        there = [one for one in lines if f"{one} ".startswith(f"{rest} ")]
        if word == "delete":
            for one in there:
                lines.remove(one)
            return None if there else "warning: statement not found"
        assert word == "set", line
        words = rest.split()
        if any(leaf in words for leaf in self.once):
            leaf = next(n for n, one in enumerate(words) if one in self.once)
            path = " ".join(words[: leaf + 1])
            for one in [one for one in lines if one.startswith(f"{path} ")]:
                lines.remove(one)
        if rest not in lines:
            lines.append(rest)
        return None


class Junos(Commands):
    """commits: (comment, configuration) of each, the last one last; locked: by somebody else."""

    once = ("preference",)
    commits, locked = (), False

    def run(self, command):
        self.answer(command)
        if command.startswith("show system commit"):
            last = enumerate(reversed(self.commits))
            return "".join(f"{number}   by me via cli\n    {one[0]}\n" for number, one in last)
        if command.startswith("show configuration"):
            return "set version 1\n" + "".join(f"set {one}\n" for one in self.config)
        (self.folder / "junos.set").write_text("".join(f"set {one}\n" for one in self.config))
        return self.show("junos", device_tables.rendered("junos", self.folder))

    def word(self, line):
        match line.split():
            case ["configure", "exclusive"]:
                self.candidate = list(self.config)
            case ["commit", "confirmed", *_] if self.locked:
                return "error: configuration database locked by somebody"
            case ["commit", "confirmed", _, "comment", name]:
                self.commits = (*self.commits, ("", self.config), (name, self.candidate))
                self.commit(self.candidate)
            case ["commit"]:
                self.config, self.before = self.candidate, None
                self.saved = list(self.config)
                self.commits = (*self.commits, ("", self.config))
            case ["rollback", "0"]:
                self.candidate = list(self.config)
            case ["rollback", "1"]:
                self.candidate = list(self.commits[-2][1])
            case ["commit", "check"] | ["exit"]:
                pass
            case _:
                return self.change(line)
        return None


class Srlinux(Commands):
    once = ("next-hop-group", "preference", "description", "admin-state", "type")

    def run(self, command):
        self.answer(command)
        if command == "info flat from running":
            return "set / system\n" + "".join(f"set / {one}\n" for one in self.config)
        groups, routes = {}, {}
        for words in map(str.split, self.config):
            match words:
                case ["network-instance", _, "next-hop-groups", "group", name, *rest]:
                    if "ip-address" in rest:
                        groups[name] = (rest[-1], name.rpartition("-")[0], 1)
                    elif rest[:1] == ["blackhole"]:
                        groups[name] = ("discard", "", 1)
        for words in map(str.split, self.config):
            match words:
                case [_, _, "static-routes", "route", prefix, "next-hop-group", name]:
                    routes["main", prefix] = [[groups[name]]]
        return self.show("srlinux", routes)

    def word(self, line):
        match line.split():
            case ["enter", "candidate", "private", "name", _]:
                self.candidate = list(self.config)
            case ["commit", "confirmed", "timeout", _]:
                self.commit(self.candidate)
            case ["tools", "system", "configuration", "confirmed-accept"]:
                self.before = None
            case ["tools", "system", "configuration", "confirmed-reject"]:
                self.expire()
            case ["save", "startup"]:
                self.saved = list(self.config)
            case ["commit", "validate"] | ["discard", "now"]:
                pass
            case _:
                return self.change(line)
        return None


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


class Frr(Shell):
    """What is seen of FRR without its daemons; test_push_live.py has real ones."""

    def run(self, command, text=""):
        self.answer(command)
        match command.split()[:3]:
            case ["vtysh", "-c", "'write"]:
                self.saved = list(self.config)
            case ["vtysh", "-c", _] if "running" in command:
                return "".join(f"{line}\n" for line in self.config)
            case ["vtysh", "-c", _]:
                (self.folder / "frr.conf").write_text("".join(f"{line}\n" for line in self.config))
                return self.show("frr", device_tables.rendered("frr", self.folder))
            case ["vtysh", "-f", file]:
                self.configure(self.files[file].splitlines())
            case ["ip", "-json", _]:
                return json.dumps(self.rules())
            case ["ip", _, "-batch"]:
                raise AssertionError(text)
        return ""

    def configure(self, lines):
        config = list(self.config)
        for line in lines:
            if line.startswith("no "):
                config.remove(line[3:])
            elif line.startswith(("ip route", "ipv6 route")) and line not in config:
                config.append(line)
        self.commit(config)
        self.before = None

    def rules(self):
        text = self.files.get("/etc/polarfab/rules.batch", "")
        rules = [line.split() for line in text.splitlines() if line.startswith("rule add iif")]
        return [
            {"iif": words[3], "table": words[5], "priority": int(words[7]), "protocol": "80"}
            for words in rules
        ]


class Sonic(Shell):
    """frr: what FRR runs beside the static routes. learned: the routes that its BGP would find.

    `start` does what the container of FRR does (sonic-buildimage, dockers/docker-fpm-frr:
    docker_init.sh in mode split-unified, frr/supervisord/supervisord.conf.j2).
    """

    frr = ""
    started = 0
    daemons = frozenset()
    learned = None

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

    def shown(self, command):
        if command.startswith("cat /etc/sonic/frr/frr.conf"):
            return self.files.get("/etc/sonic/frr/frr.conf", "")
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
                ways = zip(entry["nexthop"].split(","), entry["ifname"].split(","), strict=True)
                routes[table, prefix] = [[(*way, 1) for way in ways]]
        if self.learned and "router bgp" in self.frr:
            routes |= self.learned
        return self.show("sonic", routes)

    def do(self, words):
        match words:
            case ["systemctl", "restart", "bgp"]:
                self.start()
            case ["config", "checkpoint", _]:
                assert self.before is None
                self.before = copy.deepcopy(self.config)
            case ["systemd-run", _, _, "config", "rollback", _]:
                pass
            case ["config", "rollback", _]:
                self.config = copy.deepcopy(self.before)
            case ["systemctl", "stop", _]:
                pass
            case ["config", "delete-checkpoint", _]:
                self.before = None
            case ["config", "load", "-y", file]:
                for name, table in json.loads(self.files[file]).items():
                    self.config.setdefault(name, {}).update(table)
            case ["sonic-db-cli", "CONFIG_DB", "HSET", key, *pairs]:
                name, _, entry = key.partition("|")
                values = dict(zip(pairs[::2], pairs[1::2], strict=True))
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


class Nvue(Shell):
    candidate = None

    def shown(self, command):
        if command == "nv config show -o json":
            return json.dumps([{"header": {"model": "vx"}}, {"set": self.config}])
        interfaces = self.config.get("interface", {})
        routes = {}
        default = self.config.get("vrf", {}).get("default", {})
        static = default.get("router", {}).get("static", {})
        for prefix, entry in static.items():
            routes["main", prefix] = (
                [[(via, self.through(interfaces, via), 1) for via in entry["via"]]]
                if "via" in entry
                else [[("discard", "", 1)]]
            )
        return self.show("frr", routes)

    @staticmethod
    def through(interfaces, via):
        from ipaddress import ip_address, ip_interface

        for name, interface in interfaces.items():
            for address in interface.get("ip", {}).get("address", {}):
                if ip_address(via) in ip_interface(address).network:
                    return name
        raise AssertionError(via)

    def do(self, words):
        if words[:1] == ["nv"] and words[1] in ("set", "unset"):
            words, tree = words[1:], self.candidate
            *path, last = words[1:]
            for key in path[:-1] if words[0] == "set" else path:
                tree = tree.setdefault(key, {})
            if words[0] == "set":
                tree[path[-1]] = last
            else:
                del tree[last]
            return
        match words:
            case ["nv", "config", "detach"]:
                self.candidate = copy.deepcopy(self.config)
            case ["nv", "config", "patch", file]:
                for part in yaml.safe_load(self.files[file]):
                    merge(self.candidate, part.get("set", {}))
            case ["nv", "config", "apply", "--confirm", _, "-y"]:
                self.commit(self.candidate)
            case ["nv", "config", "apply", "--confirm-yes"]:
                self.before = None
            case ["nv", "config", "apply", "--confirm-no"]:
                self.expire()
            case ["nv", "config", "save"]:
                assert self.before is None
                self.saved = copy.deepcopy(self.config)
            case _:
                raise AssertionError(words)


def merge(tree, other):
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            merge(tree[key], value)
        else:
            tree[key] = copy.deepcopy(value)


SYSTEMS = {
    "eos": (Eos, dict),
    "nxos": (Nxos, dict),
    "junos": (Junos, list),
    "srlinux": (Srlinux, list),
    "sonic": (Sonic, dict),
    "nvue": (Nvue, dict),
}
"""The stand-in of each system, and the configuration of an empty one."""
