"""The store on one SQLite file: no server, many processes, one fsync for whatever gathered meanwhile."""
