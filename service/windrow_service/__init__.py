"""The coordinator: file inventories and split grouping plans over HTTP."""
