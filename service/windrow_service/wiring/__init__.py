"""Builds the services of each room over the adapters that the settings choose."""
