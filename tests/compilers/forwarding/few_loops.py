"""Loops that are translated in a second."""

from compilers.forwarding.machine_code import kernel, loop


@loop
def next_of(number: int) -> int:
    return number + 1


@kernel("int64(int64)")
def twice(number: int) -> int:
    return number + number


@kernel("int64(int64)")
def two_more(number: int) -> int:
    return next_of(next_of(number))
