"""From spec and inventory to verified forwarding tables. See docs/architecture.md."""
