"""The tables of a coordinator as a catalog of Spark: `SELECT * FROM windrow.sales.events`."""
