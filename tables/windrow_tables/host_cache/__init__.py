"""The cache of files on a host that runs executors, and the agent that manages it.

All modules except `agent` and `contents` are pickled by value and sent to executors with the
reader: they need only the standard library.
"""
