"""Slack, through slack-bolt."""
