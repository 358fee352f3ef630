"""Outputs of devices: files of them, neighbours, and routing tables in one form."""
