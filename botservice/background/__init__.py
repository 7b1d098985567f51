"""What goes on beside answers: the observer, retention, compaction, and the watch over models."""
