"""Tests that others have written, run on tables that Windrow plans."""
