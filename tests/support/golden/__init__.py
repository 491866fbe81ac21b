"""Golden files: what the product answers, plans and prints, to be compared with later versions.

`python -m tests.support.golden` writes them anew; a name or several choose which.
"""
