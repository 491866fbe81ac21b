"""Write plans, and the records of writes."""
