"""Inventories cut into immutable manifests, and changes that are applied to them."""
