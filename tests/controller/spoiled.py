"""A controller whose program for one switch is bad; run by test_controller_live.

argv: build, framework, port, status file, the vertex, and what to spoil: group or flow.
"""

import struct
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from compilers.tables.folders.build_folder import load
from compilers.targets.openflow.encoder import Encoder
from controller.app import serve
from controller.settings import Address, Settings
from controller.switches import framework as frameworks
from controller.switches.current import current_of


def group_add(kind):
    """The part of the message that adds group 1, of this type, with one bucket of 32 bytes."""
    return struct.pack("!HBxIH", 0, kind, 1, 32)


def action(kind):
    """An action of this type that has no operands."""
    return struct.pack("!HHxxxx", kind, 8)


INDIRECT, DEC_TTL, UNHEARD_OF = 2, 24, 99


class Spoiled(Encoder):
    """The encoder, but for one switch's bytes."""

    def program(self, vertex, generation=0):
        program = super().program(vertex, generation)
        if vertex != int(sys.argv[5]):
            return program
        make, good = {"group": (group_add, INDIRECT), "flow": (action, DEC_TTL)}[sys.argv[6]]

        def spoil(blocks):
            (first, *rest) = blocks
            bad = first.tobytes().replace(make(good), make(UNHEARD_OF), 1)
            return np.frombuffer(bad, np.uint8).reshape(first.shape), *rest

        part = f"{sys.argv[6]}s"
        return replace(program, **{part: spoil(getattr(program, part))})


build = load(Path(sys.argv[1]))
chosen = frameworks.load(sys.argv[2])
serve(
    chosen,
    lambda: current_of(build, Spoiled(build)),
    Settings(Address("127.0.0.1", int(sys.argv[3]), "--listen"), status_file=Path(sys.argv[4])),
    print,
    Path(sys.argv[1]),
)
