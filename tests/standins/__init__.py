"""Servers on loopback that stand in for the outside world: strict ones, talked to through the real clients."""
