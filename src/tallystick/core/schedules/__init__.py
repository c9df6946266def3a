"""Schedules: when the ticks of a timetable are, and what becomes of those that are due."""
