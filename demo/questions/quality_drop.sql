-- How much worse the lever's setting scores than the original, in the suite where it is worst. 1 is the noise of the original's repeats up
-- to then: 95 of 100 differences between two of them are smaller.
with runs as (
    select suite, setting = 'original' as is_original, evaluated_at >= $since as is_asked, if(better = 'higher', score, -score) as score
    from evaluations
    where $segment and lever = $lever and evaluated_at < $until
), suites as (
    select suite,
        avg(score) filter (where is_original and is_asked) - avg(score) filter (where not is_original and is_asked) as worse_by,
        1.96 * sqrt(2) * stddev_samp(score) filter (where is_original) as noise
    from runs
    group by suite
)
select max(worse_by / noise) as value
from suites
