"""Schedules as programs and people hold them."""
