"""Failures: what packets do while links or switches are down."""
