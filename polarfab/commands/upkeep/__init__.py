"""Verbs about folders on disk, and about polarfab itself."""
