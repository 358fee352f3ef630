"""AS numbers that a switch may have."""

PRIVATE_AS = 4_200_000_000
"""The first of the private range of four bytes (RFC 6996)."""
FIRST_AS, LAST_AS = 1, 4_294_967_294
RESERVED_AS = (23_456, 65_535)
"""AS_TRANS (RFC 6793), and the last one of two bytes (RFC 7300)."""
