"""What people may use, and what they have used."""
