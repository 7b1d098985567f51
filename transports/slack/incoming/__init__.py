"""What Slack delivers: taken in, stored, read."""
