"""The only room that removes, renames or overwrites files and folders, and only what is ours.

What is ours, a proof of `proofs.py` shows: a name that only we give, a mark, an entry in a record, or
the caller's consent. `disks.py` does it on local disks, and `stores.py` on HDFS and object stores; both
refuse paths that lead out of their root.
"""
