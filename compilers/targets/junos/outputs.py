"""JSON of Juniper Junos, whichever way it is exported.

In the usual form every value is a list of `{"data": …}`. `set system export-format state-data json
compact` prints the values alone. A device with several routing engines puts what each says into
`multi-routing-engine-results`.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import items, mapping, words

ENGINES = "multi-routing-engine-results"


def outputs(document: object, name: str) -> Iterator[object]:
    """The elements of a name in a document, of every routing engine that it has."""
    fields = mapping(document)
    for results in items(fields.get(ENGINES)):
        for engine in items(mapping(results).get("multi-routing-engine-item")):
            yield from outputs(engine, name)
    yield from items(fields.get(name))


def has_output(document: object, name: str) -> bool:
    """Whether a document has an element of a name."""
    return next(outputs(document, name), None) is not None


def texts(entry: object, key: str) -> tuple[str, ...]:
    """The texts of the elements of a name in an entry, in either form of the JSON."""
    values = items(mapping(entry).get(key))
    return words(
        *(value if isinstance(value, str) else mapping(value).get("data") for value in values)
    )


def text(entry: object, key: str) -> str:
    """The text of the first element of a name in an entry, "" without one."""
    return next(iter(texts(entry, key)), "")
