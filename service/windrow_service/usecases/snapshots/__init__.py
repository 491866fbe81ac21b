"""Snapshots: made by refreshes and publishes, read by plans, dropped when they are old."""
