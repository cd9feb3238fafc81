-- The table that the examples read.
CREATE TABLE orders (id int PRIMARY KEY, customer text NOT NULL, price numeric(10, 2) NOT NULL);
INSERT INTO orders VALUES (1, 'Ada', 12.50), (2, 'Ben', 3.99), (3, 'Ada', 7.50);
CREATE PUBLICATION shop FOR TABLE orders;
