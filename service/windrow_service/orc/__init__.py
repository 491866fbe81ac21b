"""Footers of ORC files; imported by processes that read footers, so it imports little."""
