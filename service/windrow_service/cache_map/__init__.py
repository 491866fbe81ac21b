"""The cache map: which worker lives, and which files it holds; in this process, or in Redis."""
