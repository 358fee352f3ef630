"""The range of AS numbers that a switch may have, for the checks of specs and inventories."""

PRIVATE_AS = 4_200_000_000
"""The first private AS number of four bytes (RFC 6996)."""
FIRST_AS, LAST_AS = 1, 4_294_967_294
"""The first and the last AS number."""
RESERVED_AS = (23_456, 65_535)
"""The reserved AS numbers: AS_TRANS (RFC 6793), and the last AS number of two bytes (RFC 7300)."""
