"""Lossless fabrics: channels, layers and priorities free of deadlock."""
