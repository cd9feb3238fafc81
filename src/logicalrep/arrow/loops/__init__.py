"""The loops over rows, values and bytes: C in `logicalrep-native`, or plain Python without it."""
