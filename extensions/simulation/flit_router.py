"""The router that flits go through: its pipeline and its allocator.

Users set it by `--router`, whose text `FlitRouter.read` reads. `flit_kernel` simulates it.
"""

from __future__ import annotations

from typing import NamedTuple

from compilers.forwarding.machine_code import inlined_loop
from inventory.problems import InputError, not_among

MOST = 1_000
"""The largest value that a field may have."""
AT_LEAST_ONE = ("crossbar", "speedup")
"""The fields that may not be 0."""


class FlitRouter(NamedTuple):
    """An input-queued router like that of BookSim 2, whose names are in brackets.

    A cycle of the links has `speedup` steps of the router. The head of a packet needs a step each
    to be routed, to be given a virtual channel, to be allocated, and to pass the crossbar. The
    other flits need the last two steps.
    """

    routing: int = 1
    """How long routing takes [routing_delay]. 0: no time, as the switch before has routed the
    packet (lookahead routing). 1: one step of the router. n > 1: n cycles of the links. Heads of
    one channel are routed one at a time."""
    crossbar: int = 1
    """How long the crossbar takes [st_final_delay]. 1: one step of the router. n > 1: n cycles of
    the links. Several flits may be in the crossbar, one behind the other."""
    credit: int = 2
    """Cycles from when a credit comes until it counts [credit_delay]. Hosts count it at once."""
    speedup: int = 2
    """Steps of the router in a cycle of the links [internal_speedup]."""
    islip: int = 0
    """Iterations of iSLIP (McKeown, 1999), by which inputs and outputs are matched [sw_allocator,
    alloc_iters]; 0: each input chooses a channel, then each output an input
    [separable_input_first]."""

    @classmethod
    def read(cls, text: str) -> FlitRouter:
        """Read a text such as `routing=2,islip=3`; "" is the usual router.

        Raises:
            InputError: there is no such key, it occurs twice, or its value is not allowed.

        >>> FlitRouter.read("routing=2,islip=3").text()
        'routing=2,islip=3'
        """
        values = dict[str, int]()
        for word in text.split(",") if text else ():
            key, _, value = word.partition("=")
            if key not in cls._fields:
                raise InputError(not_among(key, cls._fields, "router"))
            least_value = 1 if key in AT_LEAST_ONE else 0
            if not (value.isascii() and value.isdigit() and least_value <= int(value) <= MOST):
                raise InputError.of(f"{key}= and {least_value} to {MOST:,}", word, key="router")
            if key in values:
                raise InputError.of(f"{key} once", text, key="router")
            values[key] = int(value)
        return cls(**values)

    def text(self, whole: bool = False) -> str:
        """The text that `read` reads: the values that differ from the default; if `whole`, all."""
        values, defaults = self._asdict(), self._field_defaults
        return ",".join(f"{k}={v}" for k, v in values.items() if whole or v != defaults[k])

    @property
    def pipeline(self) -> int:
        """The cycles that a head takes from its buffer to the link if nothing is in its way."""
        # In steps. Routing ends with its last step, which is none if routing takes no time.
        routed = last_step_of_stage(0, self.routing, self.speedup) + (self.routing > 0)
        allocated = routed + 2  # a step for a virtual channel, and one for the allocation
        return allocated // self.speedup + self.crossbar


USUAL_ROUTER = FlitRouter()
"""The router by default."""


@inlined_loop
def last_step_of_stage(step: int, cycles: int, speedup: int) -> int:
    """The last step of a stage of the pipeline, such as routing.

    A stage of a step or less has that step alone. The last step of a longer stage is the first step
    of a cycle, `cycles - 1` cycles after the cycle in which the stage began.

    Example: with 2 steps a cycle, step 5 is in cycle 2. If routing takes 3 cycles and begins there,
    its last step is in cycle 4, which begins with step 8.

    Args:
        step: the step at which the stage begins.
        cycles: how long it takes, as in `FlitRouter`: 0, 1 step, or n > 1 cycles.
        speedup: the steps of a cycle.
    """
    return step if cycles <= 1 else (step // speedup + cycles - 1) * speedup
