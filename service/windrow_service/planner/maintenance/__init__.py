"""Which rewrites of small files a budget is spent on, and why others wait."""
