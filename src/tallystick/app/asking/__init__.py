"""What others ask about a job: why it stands where it does, and what it shows."""
