"""What Slack shows: planned, cut, formatted, sent."""
