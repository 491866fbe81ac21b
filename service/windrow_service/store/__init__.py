"""Tables, snapshots, manifests and plans in a SQL database."""
