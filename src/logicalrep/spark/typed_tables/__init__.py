"""Tables in their own columns and types: their schemas, and what of the feed is theirs."""
