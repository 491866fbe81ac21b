"""Packing strategies, one module each."""
