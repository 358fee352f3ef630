"""A controller as a whole: the order of a tick, and how it ends when another one leads."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from controller import app
from controller.cluster.cluster_member import LEASE_SECONDS, ClusterMember, Election
from controller.cluster.shared_record import SharedRecord
from controller.composition import Controller
from controller.rollout.mover import Mover
from controller.settings import Address, Settings
from tests.compilers.fabrics import polarfly_build
from tests.controller.cluster.test_leading import Etcd, Wire
from tests.controller.cluster.test_several import Later
from tests.controller.makers import loaded, no_history

BUILD = replace(polarfly_build(3), identity="0123456789abcdef")
STEPS = ("fabric", "audit", "mover", "member")


class Restarted(Exception):
    pass


@pytest.fixture
def lines():
    return []


@pytest.fixture
def controller(tmp_path, lines):
    framework = SimpleNamespace(name="ryu", error_names=None, controller=SimpleNamespace())
    current = loaded(BUILD)
    settings = Settings(Address("127.0.0.1", 0, "--listen"))
    return Controller(framework, lambda: current, settings, lines.append, tmp_path / "build")


@pytest.mark.parametrize("step", STEPS)
def test_a_leader_whose_lease_ends_says_so_once_and_restarts(controller, lines, monkeypatch, step):
    """Whenever in a tick it ends: it was said twice if that was between two looks."""
    etcd, now = Etcd(), [0.0]
    election = Election(Wire(etcd), "a", lambda: now[0])
    record = SharedRecord(None, controller.mover.history, Later)
    mover = Mover(controller.fabric, controller.keeper, no_history(), record)
    controller.mover, controller.member = mover, ClusterMember(mover, record, election)
    election.step()
    controller.member.tick()
    assert controller.member.term
    part = getattr(controller, step)
    tick = type(part).tick

    def ends(self):
        now[0] = LEASE_SECONDS + 1.0
        tick(self)

    monkeypatch.setattr(type(part), "tick", ends)
    lines.clear()
    controller.tick(files=False)
    assert controller.member.lapsed
    executed = []
    monkeypatch.setattr(os, "execv", lambda *_: executed.append(1))
    controller.tick(files=False)
    assert executed == [1]
    assert len([line for line in lines if "no longer leads and restarts" in line]) == 1


def test_a_hang_up_is_kept_from_when_the_controller_listens(monkeypatch):
    """It ended a controller that had said that it listens, and whose app had not begun."""

    class ListensError(Exception):
        pass

    def listens(*_):
        os.kill(os.getpid(), signal.SIGHUP)
        raise ListensError

    missed = []
    before = signal.signal(signal.SIGHUP, lambda *_: missed.append("would have ended"))
    framework = SimpleNamespace(quieten=lambda: None, configure=lambda *_: None)
    settings = Settings(Address("127.0.0.1", 6653, "--listen"))
    monkeypatch.setattr(app, "Controller", listens)
    try:
        with pytest.raises(ListensError):
            app.serve(framework, lambda: None, settings, print, Path())
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not missed
