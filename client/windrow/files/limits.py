"""Bounds of what is read of a file; alone, so that settings need neither NumPy nor pyarrow."""

# 2,000 columns of 350 row groups with statistics. One that large is parsed to a gigabyte.
MAX_FOOTER_BYTES = 64 * 2**20
