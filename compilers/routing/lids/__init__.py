"""LIDs: several ways to every host of InfiniBand, one for each of its addresses."""
