"""The command `tally`: one module a subcommand, imported when it is called."""
