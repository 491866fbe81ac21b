"""The version of this release, for the client, the coordinator and the jobs."""

__version__ = "0.1.0"
