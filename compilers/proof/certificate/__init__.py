"""Proof by certificate: local conditions on tables and cables, in the place of walks."""
