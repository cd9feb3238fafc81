"""Sessions with the server that survive its restarts. Needs psycopg 3."""
