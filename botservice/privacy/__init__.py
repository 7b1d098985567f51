"""Forgetting, exporting and correcting what is kept of people, and the list of places where it lies."""
