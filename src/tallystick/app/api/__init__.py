"""What users hold: Tally, workflows, steps and jobs."""
