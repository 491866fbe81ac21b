"""Tables of plain files, described as Iceberg tables, for engines that read those."""
