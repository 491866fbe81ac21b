"""Files on S3, Google Cloud Storage and Azure, through `obstore`.

`obstore` is imported only where it is used: this code is shipped to executors, and tables on disks
need no client of object stores.
"""
