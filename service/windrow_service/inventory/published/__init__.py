"""Inventories that callers publish, checked before they are believed."""
