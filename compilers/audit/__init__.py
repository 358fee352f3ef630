"""The fabric as it is wired, against the fabric as it was planned."""
