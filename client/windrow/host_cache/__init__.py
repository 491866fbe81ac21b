"""What a host that runs executors has of Windrow: a cache of files, and the agent that tends it.

All but the agent and `contents` travel to executors by value, with the reader: they need the
standard library alone, and diskcache where they run.
"""
