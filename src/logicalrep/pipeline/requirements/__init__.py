"""All that a run needs of its server and role, found before anything starts, and one script of SQL for it."""
