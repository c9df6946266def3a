"""A workflow on replay: calls, waits and children return what was recorded, and record what is new."""
