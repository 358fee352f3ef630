"""Upkeep of a running fabric: repair of failures."""
