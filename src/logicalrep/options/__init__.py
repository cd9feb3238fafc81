"""Options: readers of their texts, and checks of addresses, paths and extras."""
