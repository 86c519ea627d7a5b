"""Everything said to the database: the store, its schema, named questions, SQL made from metric rows, a stranger's SQL."""
