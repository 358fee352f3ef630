"""Values in JSON of Juniper Junos, whichever way the device exports it.

By default every value is a list of `{"data": …}`. With `set system export-format state-data json
compact` a value is printed alone. A device with several routing engines puts the output of each
into `multi-routing-engine-results`. The readers of neighbours and routes call these functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import items, mapping, words

ENGINES = "multi-routing-engine-results"
"""The element with the outputs of several routing engines."""


def outputs(document: object, name: str) -> Iterator[object]:
    """The elements with a name in a document, of every routing engine."""
    fields = mapping(document)
    for results in items(fields.get(ENGINES)):
        for engine in items(mapping(results).get("multi-routing-engine-item")):
            yield from outputs(engine, name)
    yield from items(fields.get(name))


def has_output(document: object, name: str) -> bool:
    """Whether a document has an element with a name."""
    return next(outputs(document, name), None) is not None


def texts(entry: object, key: str) -> tuple[str, ...]:
    """The texts of the elements with a name in an entry, in either form of the JSON."""
    values = items(mapping(entry).get(key))
    return words(
        *(value if isinstance(value, str) else mapping(value).get("data") for value in values)
    )


def text(entry: object, key: str) -> str:
    """The text of the first element with a name in an entry; "" without one."""
    return next(iter(texts(entry, key)), "")
