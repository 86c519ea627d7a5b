-- What a metric's row says besides its formula. from_cells: its sums are kept in cells; core: reports give it unasked; missing: what to set
-- where it is not known. The rows are written anew at each start.
alter table metrics add column title varchar;
alter table metrics add column times varchar;
alter table metrics add column across varchar;
alter table metrics add column percentiles_of varchar;
alter table metrics add column missing varchar;
alter table metrics add column from_cells boolean;
alter table metrics add column core boolean;
