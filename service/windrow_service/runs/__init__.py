"""Planning off the event loop."""
