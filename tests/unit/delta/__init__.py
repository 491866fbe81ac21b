"""Tests of reading the logs of Delta tables."""
