"""Paths that hosts choose by source routing: their sets, and probes that tell what has failed."""
