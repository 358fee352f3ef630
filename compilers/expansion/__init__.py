"""Expansion of a fabric by clusters: nothing installed changes, additions are listed."""
