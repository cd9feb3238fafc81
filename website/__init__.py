"""The site: the pages of this repository, the Python API and the reference of the protocol in one look."""
