"""Formats of single values of an inventory: names, addresses, numbers, lengths.

The models of inventories and specs (`inventory.model`, `inventory.floor` …) use the annotated types
below, such as `Name`. Each has a validator, which raises a `refusal` in the words of the file, and
a JSON schema for editors.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

from inventory.asn_range import FIRST_AS, LAST_AS, RESERVED_AS
from inventory.names import NAME

MAC = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")
"""A MAC address, such as `02:00:00:00:00:01`."""
PORT_WORD = re.compile(r"([A-Za-z0-9._/:-]|(?<=[^ ]) (?=[^ ])){0,67}")
"""A port name whose placeholders are replaced by digits, such as `ethernet-1/0`."""
PLACEHOLDERS = ("{}", "{module}", "{lane}")
"""The placeholders of a port name, each at most once: the port's number, its module, its lane."""
SYSTEM_PORT = re.compile(
    r"([A-Za-z0-9._/:-]|(?<=[^ ]) (?=[^ ])|"
    r"\{(module|cage|lane|port|serdes)(\*[1-9][0-9]{0,2})?\}){1,64}"
)
"""A port name of a switch type, such as `Ethernet{cage}/{lane}`; `{lane*2}` counts in twos."""
HOST_FIELDS = ("node", "vertex", "rack", "host", "number")
"""The fields of a pattern of host names."""
TEXT_FIELDS = ("node", "rack")
"""The fields of host names that are text; the others are numbers."""
PADDING = re.compile(r"0[1-9]")
"""The format of a number padded with zeros, such as `03`."""
METRES_TEXT = re.compile(r"[0-9]{1,5}(\.[0-9]{1,3})?")
"""A length, such as `2.5`."""
GUID = re.compile(r"0x([0-9a-f]{16})|([0-9a-f]{4}(:[0-9a-f]{4}){3})", re.IGNORECASE)
"""A GUID, such as `0x0002c90300001234` or `0002:c903:0000:1234`."""
COLOUR = re.compile(r"[0-9A-Fa-f]{6}")
"""A colour, such as `ffeb3b`."""
DATAPATH_ID = re.compile(r"0[xX]([0-9A-Fa-f]{1,16})|((?=.*[A-Fa-f]|0)[0-9A-Fa-f]{16})")
"""A datapath id in hexadecimal digits: after `0x`, or 16 that no decimal number would have."""
QUOTED_NUMBER = re.compile(r"[0-9]{1,15}")
"""A decimal number that is text only because it is in quotes or begins with zeros."""
NO_INTERFACES = ip_network("0.0.0.0/8"), ip_network("240.0.0.0/4")
"""Networks whose addresses no interface has."""
LONG_NUMBER = re.compile(r"-?[1-9][0-9]{15,39}")
"""A whole number of so many digits that `inventory.yamlfile` reads it as text."""


LONGEST_LINE = 100
"""The most characters of a line of text."""
LONGEST_PATH = 4096
"""The most characters of a path on Linux."""


def refusal(required: str, todo: str = "") -> PydanticCustomError:
    """The error of a validator: `required` and `todo` reach the user as they are."""
    return PydanticCustomError("refused", "{required}", {"required": required, "todo": todo})


def refused_rows(file: str, rows: Sequence[tuple[int, str, str, str]]) -> PydanticCustomError:
    """The error of a validator for mistakes in a file that a value names.

    Args:
        file: the file's name.
        rows: for each mistake the line, what is required, what is given, and what to do.
    """
    return PydanticCustomError(
        "refused_rows", "mistakes in {file}", {"file": file, "rows": list(rows)}
    )


def _text(value: Any) -> Any:
    """Turn a whole number into the text of its digits, where a text is required (`name: 7`)."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _name(value: Any) -> Any:
    """Check that a value is a name; a whole number becomes the text of its digits."""
    text = _text(value)
    if not isinstance(text, str) or not NAME.fullmatch(text):
        raise refusal(
            "a name of at most 63 letters, digits and . _ -, a letter or digit first",
            "it becomes a host name and a file name",
        )
    return text


def _mac(value: Any) -> Any:
    """A MAC address that one interface may have, in small letters."""
    if not isinstance(value, str) or not MAC.fullmatch(value):
        raise refusal("a MAC address such as 02:00:00:00:00:01")
    if int(value[:2], 16) & 1:
        raise refusal("a unicast MAC address", "the lowest bit of its first byte must be 0")
    if not int(value.replace(":", ""), 16):
        raise refusal("a MAC address other than 00:00:00:00:00:00")
    return value.lower()


def _whole(value: Any) -> Any:
    """Numbers of over 15 digits come from YAML as text."""
    return int(value) if isinstance(value, str) and LONG_NUMBER.fullmatch(value) else value


def _datapath_id(value: Any) -> Any:
    """A datapath id as a number.

    Other types than text and numbers are left to pydantic, and so are numbers in quotes: as of
    every whole number, the message says to write it without quotes.
    """
    if isinstance(value, str) and not QUOTED_NUMBER.fullmatch(value):
        match = DATAPATH_ID.fullmatch(value)
        if match is None:
            raise refusal(
                "a datapath id: 0x and 1 to 16 hexadecimal digits, or at most 15 decimal ones"
            )
        value = int(match[1] or match[2], 16)
    if type(value) is int and not 1 <= value < 2**64:
        raise refusal("a datapath id from 1 to 0xffffffffffffffff")
    return value


def _management(value: Any) -> Any:
    """An address that an interface of a network may have."""
    try:
        address = ip_address(value) if isinstance(value, str) and "%" not in value else value
    except ValueError:
        address = None
    if not isinstance(address, IPv4Address | IPv6Address):
        raise refusal("an IPv4 or IPv6 address", "without prefix length, zone or host name")
    if address.is_multicast or address.is_unspecified:
        raise refusal("a unicast IPv4 or IPv6 address")
    if address.is_loopback or any(address in network for network in NO_INTERFACES):
        required = "an address that an interface may have"
        raise refusal(required, "not one of a loopback, a broadcast or a reserved range")
    return address


def _as_number(value: int) -> int:
    """A number that an autonomous system may have."""
    if not FIRST_AS <= value <= LAST_AS or value in RESERVED_AS:
        others = " and ".join(map(str, RESERVED_AS))
        raise refusal(f"an AS number from {FIRST_AS} to {LAST_AS} other than {others}")
    return value


def _port_name(value: Any) -> Any:
    """A port name, in which each placeholder may be once."""
    text = without_placeholders = _text(value)
    if isinstance(text, str):
        for placeholder in PLACEHOLDERS:
            without_placeholders = without_placeholders.replace(placeholder, "0", 1)
    if not isinstance(text, str) or not text or not PORT_WORD.fullmatch(without_placeholders):
        raise refusal(
            "a port name of letters, digits, single spaces and . _ / : -, "
            "with one bare {} for the number",
            "write it like eth{} or ethernet-1/{}",
        )
    return text


def _host_pattern(value: Any) -> Any:
    """A pattern that makes a host name of every host: known fields, numbers padded at most."""
    known_fields = ", ".join(f"{{{word}}}" for word in HOST_FIELDS)
    if not isinstance(value, str):
        raise refusal("a pattern such as gpu{number:03}", f"fields are {known_fields}")
    try:
        parts = list(string.Formatter().parse(value))
    except ValueError:
        raise refusal(
            "a pattern with every { closed by a }", "write it like {node}-{host}"
        ) from None
    names = set()
    for _, name, format_spec, conversion in parts:
        if name is None:
            continue
        if name not in HOST_FIELDS:
            raise refusal(
                f"fields of {known_fields}", "write it like gpu{number:03} or {node}-{host}"
            )
        if conversion or not _pads_at_most(name, format_spec or ""):
            todo = "write it like {number:03}; node and rack take no format"
            raise refusal("numbers padded with zeros at most", todo)
        names.add(name)
    if "number" not in names and not ("host" in names and names & {"node", "vertex"}):
        raise refusal(
            "a pattern that gives every host a name of its own",
            "add {number}, or {host} with {node} or {vertex}",
        )
    example = "".join(text if name is None else f"{text}0" for text, name, _, _ in parts)
    if not NAME.fullmatch(example):
        raise refusal("a pattern of letters, digits and . _ -, and fields", "start with a letter")
    return value


def _pads_at_most(field: str, format_spec: str) -> bool:
    """Whether a field of a host pattern has no format, or pads a number with zeros."""
    return not format_spec or (
        field not in TEXT_FIELDS and PADDING.fullmatch(format_spec) is not None
    )


def _system_port_name(value: Any) -> Any:
    """A port name of a switch type."""
    if not isinstance(value, str) or not SYSTEM_PORT.fullmatch(value):
        raise refusal(
            "a port name of letters, digits, single spaces and . _ / : -, "
            "with {cage}, {lane}, {port}, {serdes} or {module}",
            "write it like Ethernet{cage}/{lane}",
        )
    return value


def _metres(value: Any) -> Any:
    """A length in metres, of a number or of text."""
    text = str(value) if type(value) in (int, float) else value
    if not isinstance(text, str) or not METRES_TEXT.fullmatch(text):
        raise refusal("metres, at most 99999.999", "write them like 3 or 2.5")
    return float(text)


def _guid(value: Any) -> Any:
    """A GUID as `0x` and 16 small hexadecimal digits."""
    match = GUID.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise refusal("a GUID such as 0x0002c90300001234", "16 hexadecimal digits after 0x")
    digits = (match[1] or match[2]).replace(":", "").lower()
    if digits in ("0" * 16, "f" * 16):
        raise refusal("a GUID of a port", "0 and ffff:ffff:ffff:ffff mean none and all")
    return f"0x{digits}"


def _line(value: Any, *, most: int = LONGEST_LINE) -> Any:
    """A line of text of 1 to `most` characters."""
    text = _text(value)
    if not isinstance(text, str) or not text.isprintable() or not 1 <= len(text) <= most:
        raise refusal(f"a line of 1 to {most:,} printable characters")
    return text


def _colour(value: Any) -> Any:
    """A colour, in small letters."""
    text = _text(value)
    if not isinstance(text, str) or not COLOUR.fullmatch(text):
        raise refusal("a colour of six hexadecimal digits", "write it like ffeb3b")
    return text.lower()


def _pattern(pattern: str, *types: str) -> WithJsonSchema:
    """The schema of a text that matches a pattern.

    Args:
        pattern: a regular expression, also in JavaScript.
        types: the types of JSON that a value may have, if not `string` alone. A whole number stands
            for the text of its digits.
    """
    minimum = {"minimum": 0} if "integer" in types else {}
    json_types = [*types] if types else "string"
    return WithJsonSchema({"type": json_types, "pattern": f"^({pattern})$", **minimum})


# The schemas of values that have a validator. An editor checks what a pattern can say; the
# validator checks the rest.
_WORD = _pattern(NAME.pattern, "string", "integer")
"""The schema of a name."""
_MAC = _pattern(MAC.pattern)
"""The schema of a MAC address."""
_WITH_PLACEHOLDERS = PORT_WORD.pattern.replace(
    "[A-Za-z0-9._/:-]", r"[A-Za-z0-9._/:-]|\{(module|lane)?\}"
)
"""The pattern of a port name, in which placeholders may be."""
_LINE = {
    "type": ["string", "integer"],
    "minLength": 1,
    "maxLength": LONGEST_LINE,
    "pattern": "^[^\\x00-\\x1f]*$",
}
"""The schema of a line of text."""
_ADDRESS = _pattern(
    r"(?!127\.|0\.|22[4-9]\.|2[3-9][0-9]\.)[0-9]+(\.[0-9]+){3}|(?!::1?$|ff|FF)[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*"
)
"""The schema of an address of management."""
_DATAPATH_ID = WithJsonSchema(
    {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 2**64 - 1},
            {"type": "string", "pattern": f"^({DATAPATH_ID.pattern}|{LONG_NUMBER.pattern})$"},
        ]
    }
)
"""The schema of a datapath id."""
Whole = Annotated[int, BeforeValidator(_whole), Strict()]
"""A whole number."""
Name = Annotated[str, BeforeValidator(_name), _WORD]
"""A name of a switch, a rack or the like."""
Mac = Annotated[str, BeforeValidator(_mac), _MAC]
"""A MAC address."""
TypeName = Annotated[str, BeforeValidator(_text), _WORD]
"""The name of a type that the inventory may have."""
DatapathId = Annotated[int, BeforeValidator(_datapath_id), Strict(), _DATAPATH_ID]
"""A datapath id."""
AsNumber = Annotated[
    Whole,
    AfterValidator(_as_number),
    WithJsonSchema(
        {
            "type": "integer",
            "minimum": FIRST_AS,
            "maximum": LAST_AS,
            "not": {"enum": list(RESERVED_AS)},
        }
    ),
]
"""The number of an autonomous system."""
Management = Annotated[IPv4Address | IPv6Address, BeforeValidator(_management), _ADDRESS]
"""An address of management."""
PortName = Annotated[
    str,
    BeforeValidator(_port_name),
    WithJsonSchema(
        {
            "type": ["string", "integer"],
            "minLength": 1,
            "pattern": f"^({_WITH_PLACEHOLDERS})$",
        }
    ),
]
"""The name of a port, or the pattern of ports' names."""
HostPattern = Annotated[str, BeforeValidator(_host_pattern), _pattern(r"[A-Za-z0-9{][^ ]*\{[^ ]*")]
"""The pattern of hosts' names."""
SystemPortName = Annotated[str, BeforeValidator(_system_port_name), _pattern(SYSTEM_PORT.pattern)]
"""The pattern of the names that a system gives to ports."""
Metres = Annotated[
    float,
    BeforeValidator(_metres),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 99999.999},
                {"type": "string", "pattern": f"^{METRES_TEXT.pattern}$"},
            ]
        }
    ),
]
"""A length in metres."""
Guid = Annotated[
    str,
    BeforeValidator(_guid),
    _pattern(
        r"0[xX](?!0{16}$|[fF]{16}$)[0-9A-Fa-f]{16}"
        r"|(?!0000(:0000){3}$|[fF]{4}(:[fF]{4}){3}$)[0-9A-Fa-f]{4}(:[0-9A-Fa-f]{4}){3}"
    ),
]
"""The GUID of an InfiniBand port."""
Line = Annotated[str, BeforeValidator(_line), WithJsonSchema(_LINE)]
"""A line of text."""
LongLine = Annotated[
    str,
    BeforeValidator(lambda value: _line(value, most=LONGEST_PATH)),
    WithJsonSchema({**_LINE, "maxLength": LONGEST_PATH}),
]
"""A line of text that may be as long as a path."""
Colour = Annotated[str, BeforeValidator(_colour), _pattern(COLOUR.pattern, "string", "integer")]
"""A colour of red, green and blue."""
NAMED: dict[str, Any] = {"propertyNames": {"pattern": f"^({NAME.pattern})$"}}
"""The schema's part for a mapping whose keys are names."""
Vars = Annotated[dict[Name, Any], WithJsonSchema({"type": "object", **NAMED})]
"""The user's own variables, of any kind; templates see them as `vars`."""


class Model(BaseModel):
    """A frozen value read from YAML: unknown keys and wrong types are refused.

    A model's validator is built when it is first used: most commands read no inventory.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
