"""One module a page: a reader, the URL's query and the time in, HTML out."""
