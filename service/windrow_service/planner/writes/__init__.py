"""Plans of writes: how many files, where rows go, and what comes of each way to place them."""
