"""Python's collector of cycles: what it looks at while a controller runs, and what is left."""

import gc
from dataclasses import replace
from types import SimpleNamespace
from weakref import ref

import pytest

from controller import app
from tests.compilers.routed import routed
from tests.controller.makers import loaded
from tests.controller.upkeep.makers import network


@pytest.fixture
def start(monkeypatch):
    """Starts an app on a framework that does nothing."""

    class Base:
        def __init__(self):
            self.threads = []

        def start(self):
            pass

    monkeypatch.setattr(
        app, "connection", SimpleNamespace(use=lambda *_: SimpleNamespace(enqueue=0))
    )
    framework = SimpleNamespace(
        app=Base,
        handler=SimpleNamespace(
            set_ev_cls=lambda *_: lambda f: f, HANDSHAKE_DISPATCHER="handshake"
        ),
        hub=SimpleNamespace(Event=object, spawn=lambda _: None),
        ofp_event=SimpleNamespace(EventOFPStateChange=None),
        ofproto=SimpleNamespace(OFP_VERSION=4),
        drop_error_log=lambda: None,
    )
    fabric, pulse = SimpleNamespace(), SimpleNamespace(follow=lambda *_: None)
    settings = SimpleNamespace(apps=())
    controller = SimpleNamespace(fabric=fabric, member=None, pulse=pulse, settings=settings)
    return app.app_class(framework, [])(controller=controller).start


def looked_at(thing):
    return any(one is thing for one in gc.get_objects())


def test_what_stays_is_not_looked_at_again_and_garbage_of_before_is_gone(start):
    class Cycle:
        pass

    stays, cycle = [[]], Cycle()
    cycle.itself, gone = cycle, ref(cycle)
    assert looked_at(stays)
    del cycle
    start()
    assert [looked_at(stays), gone()] == [False, None]


def test_a_build_that_is_replaced_is_freed_though_the_collector_never_sees_it(start):
    _, keeper = network()
    programs = ref(keeper.fabric.current.programs)
    then = replace(routed(q=3), identity="fedcba9876543210")
    start()
    gc.disable()
    try:
        keeper.fabric.load(loaded(then))
        assert programs() is None
    finally:
        gc.enable()
