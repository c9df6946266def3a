"""What users write against: Tally, its decorators, jobs, and the context that replays a workflow."""
