"""What the footers of ORC files say; imported by processes that read footers, so it needs little."""
