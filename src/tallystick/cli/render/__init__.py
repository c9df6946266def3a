"""How the command line prints: streams, wording, pages, drawings."""
