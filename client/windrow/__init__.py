"""Windrow: split grouping plans for tables of many small files, read on Spark.

client = windrow.connect("http://127.0.0.1:8080")
client.register_table("sales.events", location="/data/events")
client.refresh("sales.events")
df = client.read(spark, "sales.events", filter="ds >= '2026-11-01'", columns=["id"])
"""

from importlib.metadata import version

from windrow.client import Client
from windrow.connecting import connect, embedded
from windrow.errors import WindrowError
from windrow.plans import SplitPlan

__all__ = ["Client", "SplitPlan", "WindrowError", "__version__", "connect", "embedded"]

__version__ = version("windrow")
