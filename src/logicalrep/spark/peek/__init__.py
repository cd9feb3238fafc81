"""mode = peek: each micro-batch reads its part of the slot through SQL."""
