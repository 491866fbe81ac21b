"""Registered tables."""
