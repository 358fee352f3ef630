"""Upkeep of a running fabric: repair of failures, and weights that follow load."""
