"""The command `tally`: one module per subcommand, imported when it is called."""
