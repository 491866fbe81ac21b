"""The queries of `star.py`: SQL as people write it, on tables partitioned by day, hour and time."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from sql_turns import SqlQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUMS = "SELECT count(*) AS n, sum(amount) AS total FROM events"

QUERIES = (
    # How people name a part of a year of days.
    SqlQuery("day", f"{_SUMS} WHERE ds = '2025-08-15'"),
    SqlQuery("week", f"{_SUMS} WHERE ds BETWEEN '2025-08-04' AND '2025-08-10'"),
    SqlQuery("year_month", f"{_SUMS} WHERE year(ds) = 2025 AND month(ds) = 8"),
    SqlQuery("date_format", f"{_SUMS} WHERE date_format(ds, 'yyyy-MM') = '2025-08'"),
    SqlQuery("like", f"{_SUMS} WHERE ds LIKE '2025-08-1%'"),
    SqlQuery("in_list", f"{_SUMS} WHERE ds IN ('2025-01-31', '2025-04-30', '2025-08-31')"),
    SqlQuery(
        "join_days",
        "SELECT d.quarter, count(*), sum(e.amount) FROM events e JOIN days d ON e.ds = d.day "
        "WHERE d.kind = 'holiday' GROUP BY d.quarter",
    ),
    SqlQuery("last_day", f"{_SUMS} WHERE ds = (SELECT max(day) FROM days)"),
    SqlQuery("limit", "SELECT * FROM events LIMIT 20", any_rows=True),
    SqlQuery("whole_table", f"{_SUMS} WHERE amount > 1"),
    SqlQuery("by_day", "SELECT ds, count(*), sum(amount), max(ts) FROM events GROUP BY ds"),
    SqlQuery("count", "SELECT count(*) FROM events"),
    # What else SQL has.
    SqlQuery(
        "window",
        "SELECT * FROM (SELECT ds, country, id, amount, row_number() OVER (PARTITION BY ds, country "
        "ORDER BY amount DESC, id) AS place FROM events WHERE weekofyear(ds) = 32) WHERE place = 1",
    ),
    SqlQuery(
        "exists",
        f"{_SUMS} e WHERE EXISTS "
        "(SELECT 1 FROM days d WHERE d.day = e.ds AND d.kind = 'promotion')",
    ),
    SqlQuery(
        "grouping_sets",
        "SELECT ds, country, count(*), sum(amount) FROM events "
        "WHERE trunc(ds, 'MONTH') = '2025-08-01' GROUP BY GROUPING SETS ((ds), (country), ())",
    ),
    SqlQuery(
        "union_of_months",
        "SELECT country, sum(amount), count(*) FROM (SELECT * FROM events WHERE month(ds) = 1 "
        "UNION ALL SELECT * FROM events WHERE month(ds) = 7) GROUP BY country",
    ),
    SqlQuery(
        "semi_join",
        "SELECT count(*), sum(v.amount) FROM visits v LEFT SEMI JOIN slots s "
        "ON v.ds = s.day AND v.hour = s.hour AND s.load = 'high'",
    ),
    SqlQuery(
        "join_ids",
        "SELECT r.event, e.country, e.amount FROM events e JOIN refunds r ON e.id = r.event "
        "WHERE r.reason = 'damaged'",
    ),
    SqlQuery("not_in_nulls", f"{_SUMS} WHERE ds NOT IN (SELECT day FROM closures)"),
    SqlQuery(
        "timestamps",
        "SELECT at, count(*), sum(amount) FROM readings "
        "WHERE date_trunc('DAY', at) = '2025-08-02' AND hour(at) < 6 GROUP BY at",
    ),
    SqlQuery(
        "text_hour",
        "SELECT ds, hour, count(*), sum(amount) FROM visits WHERE hour = '01' GROUP BY ds, hour",
    ),
    SqlQuery(
        "self_join",
        "SELECT a.country, a.total - b.total FROM "
        "(SELECT country, sum(amount) AS total FROM events WHERE ds = DATE'2025-08-15' GROUP BY 1) a "
        "JOIN (SELECT country, sum(amount) AS total FROM events "
        "WHERE ds = date_sub(DATE'2025-08-15', 7) GROUP BY 1) b ON a.country = b.country",
    ),
    SqlQuery(
        "cte_twice",
        "WITH monthly AS (SELECT ds, country, sum(amount) AS total FROM events "
        "WHERE quarter(ds) = 3 AND dayofmonth(ds) <= 10 GROUP BY ds, country) "
        "SELECT m.ds, m.country, m.total FROM monthly m "
        "JOIN (SELECT country, max(total) AS best FROM monthly GROUP BY country) b "
        "ON m.country = b.country AND m.total = b.best",
    ),
    SqlQuery(
        "nested_limit",
        "SELECT count(*) FROM (SELECT id FROM (SELECT * FROM events LIMIT 1000) LIMIT 50)",
    ),
    SqlQuery("udf", f"{_SUMS} WHERE quarter_of(ds) = 2 AND ds < '2025-04-20'"),
)

_CLASS = "windrow.benchmarks.QuarterOf"
# Spark's own compiler knows no generics.
_JAVA = """
package windrow.benchmarks;

public class QuarterOf implements org.apache.spark.sql.api.java.UDF1 {
  public Object call(Object day) {
    if (day == null) return null;
    int month = ((java.sql.Date) day).toLocalDate().getMonthValue();
    return Integer.valueOf((month + 2) / 3);
  }
}
"""


def register_functions(spark: SparkSession) -> None:
    """Give a session the function `quarter_of`, which is compiled for the JVM like those of users."""
    jvm = spark.sparkContext._jvm
    thread = jvm.java.lang.Thread.currentThread()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(thread.getContextClassLoader())
    compiler.cook(_JAVA)
    with tempfile.TemporaryDirectory() as folder:
        jar = Path(folder, "functions.jar")
        with zipfile.ZipFile(jar, "w") as archive:
            content = bytes(compiler.getBytecodes().get(_CLASS))
            archive.writestr(f"{_CLASS.replace('.', '/')}.class", content)
        # Tasks load the class from the jar, too.
        spark.sql(f"ADD JAR '{jar}'")
        function = thread.getContextClassLoader().loadClass(_CLASS).newInstance()
        integer = jvm.org.apache.spark.sql.types.DataType.fromJson('"integer"')
        spark._jsparkSession.udf().register("quarter_of", function, integer)
        # Executors fetch jars with their first task.
        spark.range(1).selectExpr("quarter_of(current_date())").collect()
