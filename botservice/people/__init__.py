"""Persons: who they are, what is known of them, and how they see, take along and delete it."""

from botservice.people.facts import Fact, facts_of
from botservice.people.identities import Identity, find_identity, identities_of

__all__ = ["Fact", "Identity", "facts_of", "find_identity", "identities_of"]
