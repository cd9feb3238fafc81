"""The check of all requirements of server and role before a run starts, and one SQL script that meets them."""
