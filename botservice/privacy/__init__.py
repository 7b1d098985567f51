"""What is kept of people: forgotten, taken along, corrected, and where it lies."""
