"""What client, service and tasks share: wire models, the files of tables, the base of errors."""
