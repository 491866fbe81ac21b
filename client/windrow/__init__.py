"""Windrow: split grouping plans for tables of many small files, read on Spark.

client = windrow.connect("http://127.0.0.1:8080")
client.register_table("sales.events", location="/data/events")
client.refresh("sales.events")
df = client.read(spark, "sales.events", filter="ds >= '2026-11-01'", columns=["id"])
"""

from importlib import import_module
from typing import TYPE_CHECKING

from windrow_core.version import __version__

if TYPE_CHECKING:
    from windrow.accelerating import accelerate
    from windrow.calls.plans import SplitPlan
    from windrow.client import Client
    from windrow.connecting import connect, embedded
    from windrow.errors import WindrowError
    from windrow.registering import register
else:
    # Imported on first use: processes that read footers or groups start twice as fast without them.
    _HOMES = {
        "Client": "windrow.client",
        "SplitPlan": "windrow.calls.plans",
        "WindrowError": "windrow.errors",
        "accelerate": "windrow.accelerating",
        "connect": "windrow.connecting",
        "embedded": "windrow.connecting",
        "register": "windrow.registering",
    }

    def __getattr__(name):
        if name in ("errors", "models"):
            return import_module(f"windrow.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


__all__ = [
    "Client",
    "SplitPlan",
    "WindrowError",
    "__version__",
    "accelerate",
    "connect",
    "embedded",
    "register",
]
