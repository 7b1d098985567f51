"""What goes out to a page: stored messages, answers while they are written, and the stream of both."""
