"""The management API of a controller: HTTP, metrics, status page, tokens."""
