"""Ranking of a chat's messages for a question: pure, synchronous, without a model."""
