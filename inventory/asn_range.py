"""The range of AS numbers that a switch may have, for the checks of fabric.yaml and inventories.

An AS number names an autonomous system in BGP. Here each switch has one of its own.
"""

PRIVATE_AS = 4_200_000_000
"""The first private AS number of four bytes (RFC 6996)."""
FIRST_AS, LAST_AS = 1, 4_294_967_294
"""The first and the last AS number."""
RESERVED_AS = (23_456, 65_535)
"""The reserved AS numbers: AS_TRANS (RFC 6793), and the last AS number of two bytes (RFC 7300)."""


def why_unusable(first: int, count: int) -> str:
    """Why AS numbers that are counted from the first cannot all be used, in words; "" if they can.

    >>> why_unusable(65_001, 57), why_unusable(65_530, 13)
    ('', 'among them 65,535, which is reserved')
    >>> why_unusable(4_294_967_290, 13)
    'up to 4,294,967,302'

    Args:
        first: the first number.
        count: how many there are.
    """
    last = first + count - 1
    reserved = next((number for number in RESERVED_AS if first <= number <= last), None)
    if reserved is not None:
        return f"among them {reserved:,}, which is reserved"
    return f"up to {last:,}" if last > LAST_AS else ""
