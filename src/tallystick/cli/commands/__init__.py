"""The subcommands of `tally`, one module each, imported when called."""
