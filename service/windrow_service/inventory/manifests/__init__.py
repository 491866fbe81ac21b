"""Inventories cut into immutable manifests, and changes applied to them."""
