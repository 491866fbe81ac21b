"""What the headers of Avro files say, for processes that may be lost."""
