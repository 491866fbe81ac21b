"""Grouped reads on the driver: a plan in, a DataFrame out."""
