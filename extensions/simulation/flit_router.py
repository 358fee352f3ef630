"""The router that flits go through: what `--router` and `SimulationSettings.router` say."""

from __future__ import annotations

from typing import NamedTuple

from compilers.forwarding.machine_code import inlined_loop
from inventory.problems import InputError, not_among

MOST = 1_000


class FlitRouter(NamedTuple):
    """An input-queued router as BookSim 2 has it; in brackets its names.

    The crossbar makes `speedup` steps a cycle [internal_speedup]. A head is routed, is given a
    virtual channel, is let through, and passes the crossbar, a step each; the flits behind it need
    the last two.
    """

    routing: int = 1
    """Cycles of routing in the place of a step, from 2 on [routing_delay]; 0: the router before has
    done it. The heads of a channel are routed one after the other."""
    crossbar: int = 1
    """Cycles of the crossbar in the place of a step, from 2 on [st_final_delay]. In the crossbar
    flits follow each other."""
    credit: int = 2
    """Cycles from when a credit comes until it counts, in a host at once [credit_delay]."""
    speedup: int = 2
    """Steps of the router in a cycle of the links."""
    islip: int = 0
    """Iterations of iSLIP (McKeown, 1999), by which inputs and outputs are matched [sw_allocator,
    alloc_iters]; 0: each input chooses a channel, then each output an input
    [separable_input_first]."""

    @classmethod
    def read(cls, text: str) -> FlitRouter:
        """Of KEY=VALUE,…

        Raises:
            InputError: no such key, one twice, or a value that cannot be.
        """
        values = dict[str, int]()
        for word in text.split(",") if text else ():
            key, _, value = word.partition("=")
            if key not in cls._fields:
                raise InputError(not_among(key, cls._fields, "router"))
            least = int(key in ("crossbar", "speedup"))
            if not (value.isascii() and value.isdigit() and least <= int(value) <= MOST):
                raise InputError.of(f"{key}= and {least} to {MOST:,}", word, key="router")
            if key in values:
                raise InputError.of(f"{key} once", text, key="router")
            values[key] = int(value)
        return cls(**values)

    def text(self, whole: bool = False) -> str:
        """As `read` takes it; without the whole, what is not as usual."""
        values, usual = self._asdict(), self._field_defaults
        return ",".join(f"{k}={v}" for k, v in values.items() if whole or v != usual[k])

    @property
    def pipeline(self) -> int:
        """Cycles that a head takes from its buffer to the link, where nothing is in its way."""
        routed = stage(0, self.routing, self.speedup) + (self.routing > 0)
        return (routed + 2) // self.speedup + self.crossbar


USUAL_ROUTER = FlitRouter()


@inlined_loop
def stage(step: int, cycles: int, speedup: int) -> int:
    """The step at which a stage ends that begins at a step."""
    return step if cycles <= 1 else (step // speedup + cycles - 1) * speedup
