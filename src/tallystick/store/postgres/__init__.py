"""PostgreSQL: the same promises on many machines."""
