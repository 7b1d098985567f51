"""What programs reach by HTTP: words out, events in, and the bot as a model."""
