"""How people reach the service."""
