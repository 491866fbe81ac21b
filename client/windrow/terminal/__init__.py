"""What people see in a terminal: tables, bars and progress, and a local Spark that is quiet."""
