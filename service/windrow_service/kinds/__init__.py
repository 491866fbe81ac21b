"""How the inventory of each kind of table is taken."""
