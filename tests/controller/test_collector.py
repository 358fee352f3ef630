"""A build that is replaced is freed, though nothing of it is left to the collector of cycles."""

import gc
from dataclasses import replace
from weakref import ref

from tests.compilers.routed import routed
from tests.controller.makers import loaded
from tests.controller.upkeep.makers import network


def test_a_build_that_is_replaced_is_freed_though_the_collector_never_sees_it():
    _, keeper = network()
    programs = ref(keeper.fabric.current.programs)
    then = replace(routed(q=3), identity="fedcba9876543210")
    gc.disable()
    try:
        keeper.fabric.load(loaded(then))
        assert programs() is None
    finally:
        gc.enable()
