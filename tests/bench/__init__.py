"""Rigs of polarfab bench: a bare server, an echo probe, switches to push to."""
