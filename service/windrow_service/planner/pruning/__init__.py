"""Which files a filter can match: three-valued logic on what is known about their columns."""
