"""A strict Slack on loopback: the Web API, signed events with retries, Socket Mode, streams, files, installations."""

from standins.slack_api.faults import Drop, Hang, LoseAnswer, Refuse, limited
from standins.slack_api.server import SlackApi
from standins.slack_api.world import BOT_USER, TEAM, Post

__all__ = ["BOT_USER", "TEAM", "Drop", "Hang", "LoseAnswer", "Post", "Refuse", "SlackApi", "limited"]
