"""Windrow: plans how Spark reads and writes tables that are made of many small files.

Begin with a client of a coordinator:

    import windrow

    client = windrow.connect()        # of WINDROW_URL; windrow.embedded() needs no server
    client.register_table("sales.events", "/data/events")
    client.refresh("sales.events")    # lists the files

Then read the table on Spark, without it, or ask why:

    client.read(spark, "sales.events", filter="ds >= '2026-11-01'", columns=["id"])
    client.scan("sales.events", filter="ds >= '2026-11-01'").to_pandas()
    client.explain(client.plan("sales.events").info.plan_id)

What there is:

    connect, embedded    a client of a coordinator elsewhere, or of one in this process
    Client               its methods: help(windrow.Client)
    register             tables by their names in SQL: SELECT * FROM windrow.sales.events
    accelerate           unchanged queries of Spark's own tables, planned by Windrow
    spark                what the latest queries read and wrote, and why one failed
    errors, models       errors to catch, and what calls return
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from windrow_core.version import __version__

if TYPE_CHECKING:
    from windrow.accelerating import accelerate
    from windrow.client import Client
    from windrow.connecting import connect, embedded
    from windrow.registering import register
    from windrow_calls.errors import WindrowError
    from windrow_calls.plans import SplitPlan
else:
    # Imported on first use: processes that read footers or groups start twice as fast without them.
    _HOMES = {
        "Client": "windrow.client",
        "SplitPlan": "windrow_calls.plans",
        "WindrowError": "windrow.errors",
        "accelerate": "windrow.accelerating",
        "connect": "windrow.connecting",
        "embedded": "windrow.connecting",
        "register": "windrow.registering",
    }

    def __getattr__(name):
        if name in ("errors", "models"):
            return import_module(f"windrow.{name}")
        if name == "spark":
            import_module("windrow_calls.installed").require_package("pyspark", "spark")
            return import_module("windrow.spark")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

    def __dir__():
        # Whoever looks at each of these names must not meet an error where Spark is not installed.
        modules = ["errors", "models", *(["spark"] if find_spec("pyspark") else [])]
        names = [name for name in globals() if name[:2] == "__"]
        return sorted({*__all__, *modules, *names})


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
