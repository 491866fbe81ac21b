"""Which files are cacheable, and which workers read them."""
