"""Verbs about routers that are configured: files, routes, what they hold."""
