"""The intermediate form, the walker over it, and the build that holds it."""
