"""Packets, cycle by cycle, through the tables of a build."""
