"""Readers of OpenFlow, as text and as messages."""
