"""The tables that a balance returns, checked: it may be another package's."""

from __future__ import annotations

from dataclasses import fields

from compilers.spec.balances import balance_named, package_of_balance
from compilers.spec.forwarding import Forwarding
from compilers.tables.intermediate_form import Classes, Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError

RESULT = "tables and their Forwarding"


def balanced(
    balance: str, tables: Tables, forwarding: Forwarding, topology: Topology, wiring: Wiring
) -> tuple[Tables, Forwarding]:
    """What a balance makes of tables with the alternates and the protection of a policy.

    Args:
        balance: its name.
        tables: see above.
        forwarding: what they mean.
        topology: the fabric.
        wiring: its cables.

    Raises:
        InputError: the balance of another package fails, or returns something else than tables and
            what they mean.
    """
    try:
        result = balance_named(balance).chosen(tables, forwarding, topology, wiring)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # the package may be anybody's: anything can happen
        if not package_of_balance(balance):
            raise
        raise _wrong(balance, RESULT, f"{type(error).__name__}: {error}") from error
    match result:
        case (Tables() as changed, Forwarding() as meaning):
            _require_classes(balance, tables.classes, changed.classes)
            return changed, meaning
    raise _wrong(balance, RESULT, f"{type(result).__name__}")


def _require_classes(balance: str, before: Classes, classes: Classes) -> None:
    """Pass when the arrays of classes have the type that they had, for the same classes."""
    for field in fields(Classes):
        old, new = getattr(before, field.name), getattr(classes, field.name)
        if (new.dtype, new.shape[:2], new.ndim) != (old.dtype, old.shape[:2], old.ndim):
            required = f"{field.name} as {old.dtype}{list(old.shape)}"
            raise _wrong(balance, required, f"{new.dtype}{list(new.shape)}")
    if classes.weight.shape[2] != classes.alternate.shape[2] + 1:
        required = "a weight for the minimal port and one for each alternate"
        given = f"{classes.weight.shape[2]} for {classes.alternate.shape[2]} alternates"
        raise _wrong(balance, required, given)


def _wrong(balance: str, required: str, given: str) -> InputError:
    if package := package_of_balance(balance):
        given += f" ({package})"
    return InputError.of(
        key="routing.balance",
        required=f"{required} from `chosen` of {balance}",
        given=given,
        todo="correct the package that registers it: `Classes.weighted` makes weights of numbers",
    )
