"""Words: tokens, languages, forms, look-alikes, dates."""
