"""What several transports share, besides Markdown."""
