"""The shape of the kernels' integer tables: which column holds what. Offsets point into the batch's buffer."""

from __future__ import annotations

OK, BROKEN = 0, -1
# What `counts` holds.
# EXPANDED: bytes of resources and scopes, once for each of their spans.
# KEYS: distinct attribute keys. PERIOD: attributes of the span before, whose keys are tried first. FULL: a table has no room left.
RESOURCES, SCOPES, SPANS, ATTRIBUTES, EVENTS, LINKS, EXPANDED, KEYS, PERIOD, FULL, COUNTS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
# Columns of the span table.
TRACE, TRACE_LEN, SPAN, SPAN_LEN, PARENT, PARENT_LEN, NAME, NAME_LEN = 0, 1, 2, 3, 4, 5, 6, 7
KIND, START, END, CODE, MESSAGE, MESSAGE_LEN, SCOPE, RESOURCE, SPAN_COLUMNS = 8, 9, 10, 11, 12, 13, 14, 15, 16
# Columns of the attribute table; owner kinds.
# KEY is the number of the key; BITS what a number's type makes of it; VALUE and VALUE_LEN where its text is.
OWNER_KIND, OWNER, KEY, TYPE, BITS, VALUE, VALUE_LEN, ATTRIBUTE_COLUMNS = 0, 1, 2, 3, 4, 5, 6, 7
OF_RESOURCE, OF_SCOPE, OF_SPAN, OF_EVENT, OF_LINK = 0, 1, 2, 3, 4
# Value types: the field numbers of AnyValue; 0 is no value.
STRING, BOOL, INT, DOUBLE, ARRAY, KVLIST, BYTES = 1, 2, 3, 4, 5, 6, 7
# Columns of the resource, scope, event and link tables.
RESOURCE_BODY, RESOURCE_COLUMNS = 0, 1
SCOPE_NAME, SCOPE_NAME_LEN, SCOPE_RESOURCE, SCOPE_COLUMNS = 0, 1, 2, 3
EVENT_SPAN, EVENT_TIME, EVENT_NAME, EVENT_NAME_LEN, EVENT_COLUMNS = 0, 1, 2, 3, 4
KEY_START, KEY_LEN, KEY_COLUMNS = 0, 1, 2
LINK_SPAN, LINK_TRACE, LINK_TRACE_LEN, LINK_ID, LINK_ID_LEN, LINK_COLUMNS = 0, 1, 2, 3, 4, 5
