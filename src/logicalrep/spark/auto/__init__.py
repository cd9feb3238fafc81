"""mode = auto: each batch is read by peek or by the walsender, whichever suits the slot's state."""
