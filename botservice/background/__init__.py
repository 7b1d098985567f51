"""What goes on alongside answers: the observer, retention, compaction, and the watch over models."""
