"""A table's rows at one moment: the parts that can be copied side by side, and their reading."""
