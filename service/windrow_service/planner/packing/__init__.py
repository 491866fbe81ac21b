"""From files to groups: cut into splits, pack, and say where each group is best read."""
