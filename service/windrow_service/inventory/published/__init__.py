"""Inventories that callers publish, checked before they are used."""
