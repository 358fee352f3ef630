"""Translates loops that only other loops call: no machine code is made of them alone.

numba makes machine code of each function that it translates. A function that another one calls is
optimised once by itself, and again as a part of each of its callers. Nobody calls the machine code
of the former. To leave that out saves more than a quarter of the time of a translation, and gives
the same machine code to Python's callers.

This module changes what numba does inside, so `machine_code` uses it only with releases of numba
that were tried (`TRIED_RELEASES`).
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class NoEnvironments:
    """Stands for numba's code generator: a loop without machine code has no Python environment."""

    @staticmethod
    def set_env(name: str, environment: object) -> None:
        """Numba writes the environment's address into machine code, of which there is none."""


class CalledLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a loop for LLVM, which is linked into the loop's callers as it is."""

    @property
    def codegen(self) -> type[NoEnvironments]:
        """What sets the environment of the loop."""
        return NoEnvironments

    def get_pointer_to_function(self, _name: str) -> int:
        """Return 0, by which numba's own library says that there is no such machine code."""
        return 0

    def _optimize_final_module(self) -> None:
        """Leave this to the callers."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalized = True


class CalledLoop(Compiler):  # type: ignore[misc]
    """The compiler of a loop that only other loops call."""

    def _compile_bytecode(self) -> Any:
        """Compile the loop into a `CalledLibrary`; numba makes another one where there is none."""
        name = self.state.func_id.func_qualname
        self.state.library = CalledLibrary(self.state.targetctx.codegen(), name)
        return super()._compile_bytecode()
