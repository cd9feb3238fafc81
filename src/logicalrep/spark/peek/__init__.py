"""mode = peek: each micro-batch reads its range of the slot through SQL."""
