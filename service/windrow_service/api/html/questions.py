"""Questions about figures of pages, by the heading of `docs/reference/figures.md` that answers them."""

from __future__ import annotations

from collections.abc import Mapping

QUESTIONS: Mapping[str, str] = {
    "tables": "Which tables count?",
    "files": "Which files count?",
    "size": "Which bytes count?",
    "rows": "Where does the number of rows come from?",
    "mean-file": "What is the mean file?",
    "partitions": "What is a partition?",
    "snapshots": "What is a snapshot?",
    "excess-files": "What is an excess file?",
    "small-files": "What is a small file?",
    "health": "What do the words of health mean?",
    "what-reading-costs": "How is the cost of reading reckoned?",
    "what-to-do-first": "What does the order go by?",
    "gain-over-all-tables": "How is the gain over all tables reckoned?",
    "oldest-refresh": "Which refresh is the oldest?",
    "database-on-disk": "What is in the database?",
    "trends": "What do the trends count?",
    "refreshes": "What do the figures of a refresh count?",
    "writes": "What do the figures of a write count?",
    "needed-files": "How many files does a write need?",
    "work-of-maintenance": "How are cost and gain of maintenance reckoned?",
    "sizes-of-files": "What do the bars show?",
    "plans": "What do the figures of a plan count?",
    "time-of-planning": "What is the time of planning?",
    "groups": "What is a group?",
    "files-left-out": "Which steps leave out files?",
    "predicted-and-real": "What is predicted, and what is real?",
    "time-of-reading": "How is the time of reading predicted?",
    "causes": "Which causes are named?",
    "cacheable-files": "Which files are cacheable?",
    "placement": "Where are bytes read?",
    "hit-rate": "What is the hit rate?",
    "caches-of-workers": "What do the figures of a cache count?",
    "what-is-cached": "Which files are held?",
    "packs": "What is a pack?",
}
