-- One row per column of requests for whose value one was set aside, over all that are kept, and one for whole traces that cannot be assembled.
select "column", count(*) as n from quarantine group by all order by all
