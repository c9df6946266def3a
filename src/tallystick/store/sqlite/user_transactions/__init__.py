"""Transactions of users on SQLite: savepoints in the flush of the committer."""
