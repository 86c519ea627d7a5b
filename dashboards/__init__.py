"""Numbers in, pages and the query endpoints out."""
