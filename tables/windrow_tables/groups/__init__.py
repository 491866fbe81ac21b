"""Groups of a plan, made ready to be read: by Spark's tasks, or by threads without Spark.

Like the executor, this room needs no pyspark.
"""
