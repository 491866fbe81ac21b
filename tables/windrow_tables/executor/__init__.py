"""The code that runs inside a Spark task: standard library, NumPy and pyarrow only.

The driver ships these modules by value, so executors need not have Windrow installed.
"""
