"""What logicalrep and Debezium cost: processor seconds, memory, and seconds until rows are visible."""
