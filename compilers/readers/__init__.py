"""Readers of what targets emit, and the check against the tables; no emitter is imported here."""
