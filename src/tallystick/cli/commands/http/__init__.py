"""Commands about HTTP: serving, and the keys of those who come."""
