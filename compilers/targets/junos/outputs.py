"""Values in JSON of Juniper Junos, whichever way the device exports it.

By default every value is a list of `{"data": …}`. With `set system export-format state-data json
compact` a value is printed alone. A device with several routing engines puts the output of each
into `multi-routing-engine-results`. The readers of neighbours and routes call these functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import as_list, as_mapping, nonempty

ENGINES, ENGINE = "multi-routing-engine-results", "multi-routing-engine-item"
"""The element with the outputs of several routing engines, and that of each in it."""


def elements(document: object, name: str) -> Iterator[object]:
    """The elements of this name in a document, of every routing engine."""
    fields = as_mapping(document)
    for results in as_list(fields.get(ENGINES)):
        for engine in as_list(as_mapping(results).get(ENGINE)):
            yield from elements(engine, name)
    yield from as_list(fields.get(name))


def has_element(document: object, name: str) -> bool:
    """Whether a document has an element of this name, of any routing engine."""
    return next(elements(document, name), None) is not None


def texts_of(entry: object, key: str) -> tuple[str, ...]:
    """The texts of the values of a key, in either form of the JSON."""
    values = as_list(as_mapping(entry).get(key))
    return nonempty(
        *(value if isinstance(value, str) else as_mapping(value).get("data") for value in values)
    )


def first_text(entry: object, key: str) -> str:
    """The text of the first value of a key; "" without one."""
    return next(iter(texts_of(entry, key)), "")
