"""Forgetting, exporting and correcting what is kept of people."""
