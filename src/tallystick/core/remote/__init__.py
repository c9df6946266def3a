"""Remote work as data: rows, requests, plans, routing, and what goes in and out as JSON."""
