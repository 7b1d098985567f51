"""Who gets in: tokens, logins, sessions, and the gate before every page."""
