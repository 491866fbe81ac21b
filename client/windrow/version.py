"""The version of this release: of the client, the coordinator and the jobs alike."""

__version__ = "0.1.0"
