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
    """The elements of this name: of the one routing engine, or of each."""
    known = mapping(document)
    for results in items(known.get(ENGINES)):
        for engine in items(mapping(results).get("multi-routing-engine-item")):
            yield from outputs(engine, name)
    yield from items(known.get(name))


def has_output(document: object, name: str) -> bool:
    """Whether there is such an element."""
    return next(outputs(document, name), None) is not None


def texts(entry: object, key: str) -> tuple[str, ...]:
    """The texts of an element."""
    values = items(mapping(entry).get(key))
    return words(
        *(value if isinstance(value, str) else mapping(value).get("data") for value in values)
    )


def text(entry: object, key: str) -> str:
    """The text of an element, "" where there is none."""
    return next(iter(texts(entry, key)), "")
