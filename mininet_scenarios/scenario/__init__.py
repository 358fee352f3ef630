"""Scenarios as data: files, timelines, outages, and the protocol of engines."""
