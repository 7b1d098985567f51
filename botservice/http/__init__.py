"""How HTTP clients connect: whom they trust, and which connections they use again."""
