"""Persons: their accounts, the facts known of them, and the links between them."""

from botservice.people.facts import Fact, facts_of
from botservice.people.identities import Identity, find_identity, identities_of

__all__ = ["Fact", "Identity", "facts_of", "find_identity", "identities_of"]
