"""Connections to PostgreSQL: opening, reconnecting, listening, and the outcome of a lost COMMIT."""
