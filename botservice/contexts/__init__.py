"""One conversation with everything that belongs to it, as it is stored."""
