"""The Python sides of the JVM's sessions, in which queries run."""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import SparkSession

# Sessions of a Thrift server come and go.
_MOST = 256

_sessions: dict[int, SparkSession] = {}
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
            if len(_sessions) >= _MOST:
                _sessions.pop(next(iter(_sessions)))
            session = _sessions[key] = SparkSession(spark.sparkContext, jsession)
        return session
