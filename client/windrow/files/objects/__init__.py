"""Files on S3 and Google Cloud Storage, through `obstore`.

It is imported where it is first used: this code travels to executors, and tables on disks need
no client of object stores.
"""
