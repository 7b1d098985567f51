"""What several transports share, besides Markdown and files."""
