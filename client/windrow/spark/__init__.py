"""What runs on Spark: the grouped reader."""
