"""Comparing and estimating fabrics; nothing here is emitted."""
