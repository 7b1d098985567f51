"""Pages of the web, as they are read for people: public ones alone, within bounds."""
