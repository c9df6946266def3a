"""`tally work`: workers in this process or in several."""
