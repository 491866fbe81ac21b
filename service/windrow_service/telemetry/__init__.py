"""Metrics and traces of the coordinator."""
