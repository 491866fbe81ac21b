"""The Python sides of the JVM's sessions, in which queries run."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from pyspark.sql import SparkSession

# Sessions of a Thrift server come and go; the JVM cannot drop one that is kept here.
_MOST = 32

# The most recently used last.
_sessions: OrderedDict[int, SparkSession] = OrderedDict()
_lock = threading.Lock()


def session_of(spark: SparkSession, jsession: Any) -> SparkSession:
    """Return the session of the same application whose counterpart in the JVM is given.

    Args:
        spark: A session of the application, which is returned if it is the one.
        jsession: The JVM's session.
    """
    if spark._jsparkSession.equals(jsession):
        return spark
    key = int(jsession.hashCode())
    with _lock:
        session = _sessions.get(key)
        if session is None or not session._jsparkSession.equals(jsession):
            session = _sessions[key] = SparkSession(spark.sparkContext, jsession)
        _sessions.move_to_end(key)
        if len(_sessions) > _MOST:
            _sessions.popitem(last=False)
        return session
