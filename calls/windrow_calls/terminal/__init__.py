"""Terminal output: tables, charts and progress, and a local Spark session without noise."""
