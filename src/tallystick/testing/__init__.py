"""What tests use: `stepping` for the tests of your workflows, `conformance` for those of a store."""
