"""Values that everything else is made of: messages, references, quotes, errors, policies."""
