"""The bytes of a plan: JSON and Arrow."""
