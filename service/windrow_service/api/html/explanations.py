"""What labels of figures say when they are pointed at, by the heading of `docs/reference/figures.md`."""

from __future__ import annotations

from collections.abc import Mapping

EXPLANATIONS: Mapping[str, str] = {
    "tables": "Registered tables that you can read.",
    "files": "Files of the current snapshot: what the last refresh saw, and what was published since.",
    "size": "Bytes of these files as they are stored, so compressed if the format compresses.",
    "rows": "The row counts in the footers of the files. Unknown if some file has none, as in CSV.",
    "mean-file": "The size divided by the number of files.",
    "partitions": "Folders of partition values, or buckets in them, that have files.",
    "snapshots": "Each refresh that finds a change, and each write, creates a new snapshot.",
    "excess-files": "Files beyond those that a table needs: one for each 128 MB, and at least one in "
    "each folder.",
    "small-files": "Files under 64 MB. A small partition can only have small files.",
    "late-data": "Files that came more than a day after the day that their partition names.",
    "health": "The time that reads lose to excess files, by the plans of the last seven days.",
    "what-reading-costs": "The time of one core at 320 MB a second, and 32 KB more for each file. Plans "
    "assume this; it is not measured here.",
    "what-to-do-first": "By what the reads of the last seven days lost to excess files. Each plan counts "
    "as a read of the whole table.",
    "gain-over-all-tables": "What reads would save if no table had excess files, by the figures of "
    "snapshots and the plans of seven days.",
    "oldest-refresh": "The table whose files were compared with its storage the longest ago.",
    "database-on-disk": "Everything in Windrow's database: inventories, plans, writes, receipts and the "
    "audit log.",
    "trends": "All tables at the beginning of each hour; plans are those of the hour before.",
    "refreshes": "From its beginning until it ended, or until now. Files that it has seen count, new or "
    "not.",
    "writes": "What the write put into the table, as its driver reported; empty until it is published.",
    "needed-files": "One file for each 128 MB that a write put into a partition, and at least one in each.",
    "work-of-maintenance": "Cost is the time of all cores together. Gain is what a read of the rewritten "
    "partitions saves: predicted, or measured after enough later plans.",
    "sizes-of-files": "Files by powers of two, with the same bars for each table. The line is the target "
    "of 128 MB.",
    "plans": "Files that the plan did not leave out, and their bytes, of all columns.",
    "time-of-planning": "The time that the coordinator took to choose and group the files.",
    "groups": "A plan puts files into groups; one task reads each group.",
    "files-left-out": "How many files each step of planning left out.",
    "predicted-and-real": "Predicted is what the cost model says when the plan is made; real is what the "
    "driver reports once its query has ended.",
    "time-of-reading": "By the cost model: bytes at 320 MB a second, opening files, and 16 MB more for "
    "each task.",
    "causes": "Reasons that took at least 5 % of the time, with an estimate of each.",
    "cacheable-files": "Files that a cache rule of the table marks.",
    "placement": "Where tasks read bytes, if they run on the hosts of the plan.",
    "hit-rate": "The percentage of the reads of cacheable files on a host that its cache answered.",
    "caches-of-workers": "Counted since the agent of the host started.",
    "what-is-cached": "Files that each cache rule marks, and how many of them live workers hold.",
    "packs": "Rows of small files of a table, copied into files outside of the table.",
    "replicas": "Coordinators that share this database, with a heartbeat in the last minute.",
}
