"""Balances, one a file: who may have each, what it needs of a target, what it does to tables."""
