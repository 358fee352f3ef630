"""Scenarios as data: files, timelines, outages, and what an engine is."""
