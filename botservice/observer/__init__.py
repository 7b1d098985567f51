"""Reading conversations off the reply path: notes of chats, facts of people, each with the words that it came from."""

from botservice.observer.observer import Observation, Observer

__all__ = ["Observation", "Observer"]
