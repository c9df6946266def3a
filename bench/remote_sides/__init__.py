"""Sides of the benchmark of remote work: our server and worker, a bare endpoint, Celery, a relay by hand."""
