"""The demos: queries on Spark alone and with Windrow, and writes with and without a plan."""
