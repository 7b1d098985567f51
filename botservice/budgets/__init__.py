"""Budgets: limits on use, and the use of models."""
