"""Delta tables: their files, as their log tells them, without listing folders."""
