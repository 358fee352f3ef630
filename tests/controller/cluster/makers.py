"""What several test modules of this folder and of others use."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from itertools import count
from shutil import copytree, rmtree

from tests.controller.makers import POLARFAB, begun
from tests.polarfab.forked import command_line
from tests.waiting import until

PORTS = count(7901)

TOKEN = "a-token-for-this-test"  # noqa: S105


class Process:
    """A program in the namespaces of another process, or here."""

    def __init__(self, log, inside=None):
        self.log = log
        where = ("nsenter", f"--target={inside}", "--net", "--mount") if inside else ()
        self.prefix = where

    def start(self, *command):
        with self.log.open("a") as log:
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self.process = begun([*self.prefix, *command], log, environment)

    def text(self):
        return self.log.read_text()

    def says(self, text):
        until(lambda: text in self.text(), f"{text!r} in {self.log}")

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


class Etcd(Process):
    """One member, on ports of its own."""

    def __init__(self, folder, inside=None, *options, scheme="http"):
        super().__init__(folder / "etcd.log", inside)
        url, peer = (f"//127.0.0.1:{next(PORTS)}" for _ in range(2))
        self.url, peer = f"{scheme}:{url}", f"http:{peer}"
        client = ("--listen-client-urls", self.url, "--advertise-client-urls", self.url)
        peers = ("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer)
        cluster = ("--initial-cluster", f"default={peer}", "--logger", "zap", "--unsafe-no-fsync")
        self.data = folder / "etcd"
        self.command = ("etcd", "--data-dir", self.data, *client, *peers, *cluster, *options)
        self.start(*self.command)
        try:
            self.says("serving client traffic")
        except BaseException:
            self.kill()
            raise

    def lose_data(self):
        """Come back with nothing."""
        self.kill()
        rmtree(self.data)
        self.start(*self.command)


class Instance(Process):
    """A controller of several, with a build folder of its own."""

    def __init__(self, name, folder, build, etcd, *options, inside=None):
        (home := folder / name).mkdir()
        super().__init__(home / "log", inside)
        self.name, self.build = name, home / "build"
        copytree(build, self.build)
        self.port, self.url = next(PORTS), f"127.0.0.1:{next(PORTS)}"
        self.status_file, self.tokens = home / "status.json", home / "tokens"
        self.tokens.write_text(TOKEN + "\n")
        self.tokens.chmod(0o600)
        where = ("--listen", f"127.0.0.1:{self.port}", "--status-file", self.status_file)
        api = ("--http", self.url, "--token-file", self.tokens)
        group = ("--store", etcd.url, "--name", name)
        self.command = (POLARFAB, "controller", self.build, *where, *api, *group, *options)
        self.start(*self.command)

    def leading(self):
        status = json.loads(self.status_file.read_text()) if self.status_file.exists() else {}
        return status.get("leading", {"role": ""}) | {"complete": status.get("complete")}

    def leads(self):
        return self.leading()["role"] == "leader"

    def complete(self):
        leading = self.leading()
        return leading["role"] == "leader" and leading["complete"]

    def load(self, build):
        """Have it read another build."""
        rmtree(self.build)
        copytree(build, self.build)
        self.process.send_signal(signal.SIGHUP)

    def ask(self, *words):
        """What a verb of the command line says of it."""
        code, out, err = command_line()(*words, f"http://{self.url}", "--json")
        return code, out + err


@contextmanager
def group(folder, build, *options, inside=None):
    """etcd and two controllers, the first of which leads."""
    made = [Etcd(folder, inside)]
    try:
        made.append(Instance("a", folder, build, made[0], *options, inside=inside))
        until(made[1].leads, "a leads")
        made.append(Instance("b", folder, build, made[0], *options, inside=inside))
        made[2].says("a leads")
        yield made
        for one in made:
            assert "Traceback" not in one.text()
    finally:
        for one in made:
            one.kill()
