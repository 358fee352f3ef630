"""Targets: one class each, from the intermediate form to what a system reads."""
