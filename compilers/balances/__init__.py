"""Balances, one in each file: how packets from hosts are spread, and which fabrics may have it."""
