"""Turns that wait: for a person's word about a call of a tool, or for a result that comes later."""
