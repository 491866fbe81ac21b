"""The documents: the site, and the pages of reference made from the code."""
