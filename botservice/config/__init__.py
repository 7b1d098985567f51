"""Settings from the environment and from .env, and the prices of models."""
