"""Tools that bring up, or push to, what other targets configure."""
