"""The cache map: which workers are alive and which files they hold; in this process or in Redis."""
