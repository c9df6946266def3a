"""Commands about runs, stages and telemetry."""
