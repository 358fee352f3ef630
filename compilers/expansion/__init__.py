"""Expansion of a fabric by racks: nothing that is installed changes, and additions are listed."""
