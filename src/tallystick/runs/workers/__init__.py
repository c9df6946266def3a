"""What a worker is given and what it leaves: its inputs, its artifacts, its receipt."""
