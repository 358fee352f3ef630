"""Apply the balance of a fabric to its tables, and check what it returns.

A *balance* is a load-balancing plug-in (`compilers.spec.balances.Balance`): its method `chosen`
gets the tables and sets the weights by which packets from hosts are spread over the ports of each
egress class. It may come from another package, so its result is checked for types and shapes.
"""

from __future__ import annotations

from dataclasses import fields

from compilers.spec.balances import balance_named, package_of_balance
from compilers.spec.forwarding import Forwarding
from compilers.tables.intermediate_form import Classes, Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError

RESULT = "tables and their Forwarding"
"""What a balance has to return, in words for messages."""


def balance_tables(
    balance: str, tables: Tables, forwarding: Forwarding, topology: Topology, wiring: Wiring
) -> tuple[Tables, Forwarding]:
    """Return the tables that a balance makes, and what they mean.

    Args:
        balance: its name.
        tables: with the alternates and the protection that the policy asks for.
        forwarding: what these tables mean.
        topology: the fabric.
        wiring: its cables.

    Raises:
        InputError: the balance of another package fails, or returns anything but tables and their
            `Forwarding`.
    """
    try:
        result = balance_named(balance).chosen(tables, forwarding, topology, wiring)
    except (InputError, MemoryError):  # in words of their own, or no fault of the balance
        raise
    except Exception as error:  # another package's code may raise any exception
        if not package_of_balance(balance):  # one of ours: the traceback helps more
            raise
        raise _balance_error(balance, RESULT, f"{type(error).__name__}: {error}") from error
    match result:
        case (Tables() as new_tables, Forwarding() as new_forwarding):
            _require_classes(balance, tables.classes, new_tables.classes)
            return new_tables, new_forwarding
    raise _balance_error(balance, RESULT, f"{type(result).__name__}")


def _require_classes(balance: str, before: Classes, classes: Classes) -> None:
    """Pass when the arrays of classes have the types, and the switches and classes, that they had.

    The number of alternates and of repair ports may differ, with a weight for each alternate.

    Raises:
        InputError: an array has another type or shape.
    """
    for field in fields(Classes):
        old, new = getattr(before, field.name), getattr(classes, field.name)
        same_switches_and_classes = new.ndim == old.ndim and new.shape[:2] == old.shape[:2]
        if new.dtype != old.dtype or not same_switches_and_classes:
            required = f"{field.name} as {old.dtype}{list(old.shape)}"
            raise _balance_error(balance, required, f"{new.dtype}{list(new.shape)}")
    if classes.weight.shape[2] != classes.alternate.shape[2] + 1:
        required = "a weight for the minimal port and one for each alternate"
        given = f"{classes.weight.shape[2]} for {classes.alternate.shape[2]} alternates"
        raise _balance_error(balance, required, given)


def _balance_error(balance: str, required: str, given: str) -> InputError:
    """Return the error that a balance returned something wrong, with the package it comes from."""
    if package := package_of_balance(balance):
        given += f" ({package})"
    return InputError.of(
        key="routing.balance",
        required=f"{required} from `chosen` of {balance}",
        given=given,
        todo="correct the package that registers it: `Classes.weighted` makes weights of numbers",
    )
