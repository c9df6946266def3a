"""Commands about jobs: submit, look, control."""
