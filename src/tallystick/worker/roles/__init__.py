"""The roles of a worker: each file is one duty that it does for its own jobs or for those of others."""
