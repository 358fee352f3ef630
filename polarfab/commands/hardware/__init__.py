"""Verbs about what stands in racks: cables, inventories, racks to add."""
