"""Claims on PostgreSQL: where a search begins, what it takes, and what limits allow."""
