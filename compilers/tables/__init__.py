"""The intermediate form, the packet walker, and builds with their folders."""
