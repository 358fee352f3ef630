"""Readers of files of BGP speakers."""
