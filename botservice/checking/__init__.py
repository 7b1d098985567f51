"""Checking what programs hand in, where they hand it in."""
