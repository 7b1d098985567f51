"""The fields of items: what may stand in them, frozen, and as JSON."""
