"""What people who operate a store look at, and where they look."""
