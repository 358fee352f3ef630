"""Targets: one module each, from the intermediate form to what a system reads."""
