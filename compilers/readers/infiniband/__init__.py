"""Readers of what a subnet manager is given."""
