"""Raw messages to record batches of committed changes, without a Python object for each: no Spark, no socket.

`logicalrep_protocol.columnar` makes columns of messages; here rows of changes are made of them. `kernels/` has the
compiled loops. It needs `pip install 'logicalrep[arrow]'`.
"""
