"""Encodings of plans: JSON and Arrow."""
