"""Audit: the fabric as wired and as it forwards, compared with the plan."""
