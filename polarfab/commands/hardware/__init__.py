"""Verbs about what is in racks: cables, inventories, racks to add."""
