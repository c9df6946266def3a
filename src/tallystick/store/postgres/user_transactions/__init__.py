"""Transactions of users on PostgreSQL: each on a connection of its own, under the fence of its attempt."""
