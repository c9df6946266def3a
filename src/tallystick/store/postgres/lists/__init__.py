"""Hot writes on PostgreSQL as lists: jobs, steps and ends, many rows per statement."""
