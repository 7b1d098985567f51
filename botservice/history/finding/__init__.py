"""Finding what was said: the indexes of chats, and what of them is brought up to date when."""
