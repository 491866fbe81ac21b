"""Files on S3 and Google Cloud Storage, through `obstore`.

`obstore` is imported only where it is used: this code is shipped to executors, and tables on disks
need no client of object stores.
"""
