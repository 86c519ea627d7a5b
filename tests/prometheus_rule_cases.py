"""Of each alert rule, series of a minute a step in which it fires, and series in which it stays quiet, in promtool's notation.

A rule that may fire for two reasons has a case for each, told apart behind a comma. A series is written without `instance` and `job`; every
case adds them. `at_m` is the minute that is looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Series = dict[str, str]


class Case(NamedTuple):
    """When a rule fires, and when it does not."""

    firing: Series
    quiet: Series
    at_m: int = 30


def one(name: str, firing: str, quiet: str, at_m: int = 30) -> Case:
    """A case of one series."""
    return Case({name: firing}, {name: quiet}, at_m)


TAKEN = 'leverwatch_exports_total{signal="traces",outcome="taken"}'
ANSWERED = 'leverwatch_http_requests_total{route="/",method="GET",status="2xx"}'
BROKEN = 'leverwatch_http_requests_total{route="/",method="GET",status="5xx"}'
LEAST, FREE = "leverwatch_disk_min_free_bytes", "leverwatch_disk_free_bytes"
BACKLOG, LIMIT = "leverwatch_spool_backlog_bytes", "leverwatch_spool_limit_bytes"
ACK = 'leverwatch_export_ack_seconds_bucket{signal="traces",le="%s"}'
CALL = 'leverwatch_http_request_seconds_bucket{route="/",le="%s"}'
KEEP, DISABLE = 'leverwatch_streams{policy="p",lever="l",verdict="%s",state="on"}', "disable"

CASES: dict[str, Case] = {
    "LeverwatchDown": one("up", "1x3 0x30", "1x40"),
    "LeverwatchRestarts": one("process_start_time_seconds", "0+1x40", "5x40"),
    "LeverwatchFilesRunOut": Case(
        {"process_open_fds": "900x40", "process_max_fds": "1000x40"}, {"process_open_fds": "100x40", "process_max_fds": "1000x40"}
    ),
    "LeverwatchWarns": one('leverwatch_warning{of="registry"}', "1x40", "1x10 _x30"),
    "LeverwatchTelemetryLost": one('leverwatch_observe_failed_sendings_total{signal="traces"}', "0+1x60", "5x60", 40),
    "LeverwatchRefusesExports": one('leverwatch_exports_total{signal="traces",outcome="disk"}', "0+10x40", "10x40"),
    "LeverwatchUnsoundExports": one('leverwatch_exports_total{signal="traces",outcome="unsound"}', "0+1x40", "9x40"),
    "LeverwatchRefusesCallers": one('leverwatch_refused_calls_total{port="grpc",reason="unauthenticated"}', "0+1x40", "9x40"),
    "LeverwatchReceivesNothing": one(TAKEN, "0+10x60 600x60", "0+10x120", 100),
    "LeverwatchAcknowledgesSlowly": Case(
        {ACK % "5.0": "0+1x40", ACK % "10.0": "0+10x40", ACK % "+Inf": "0+10x40"},
        {ACK % "5.0": "0+10x40", ACK % "10.0": "0+10x40", ACK % "+Inf": "0+10x40"},
    ),
    "LeverwatchBacklogGrows": Case({BACKLOG: "0+20x40", LIMIT: "500x40"}, {BACKLOG: "10x40", LIMIT: "500x40"}),
    "LeverwatchBacklogOld": one("leverwatch_spool_oldest_age_seconds", "0+60x40", "2x40"),
    "LeverwatchDiskFills": Case({LEAST: "100x500", FREE: "1000-2x500"}, {LEAST: "100x500", FREE: "1000x500"}, 400),
    "LeverwatchBodiesSetAside": one('leverwatch_folder_bytes{what="set_aside"}', "0x10 500x40", "500x60", 40),
    "LeverwatchQuarantineSurges": one('leverwatch_quarantined{column="ttft_s"}', "0+10x60", "500x60", 50),
    "LeverwatchJobFails": one('leverwatch_job_failing{name="load"}', "1x40", "0x40"),
    "LeverwatchJobsStuck": one('leverwatch_job_last_success_timestamp_seconds{name="load"}', "60x40", "0+60x40"),
    "LeverwatchWatermarkStandsStill": Case(
        {"leverwatch_watermark_lag_seconds": "0+60x60", TAKEN: "0+10x60"},
        {"leverwatch_watermark_lag_seconds": "0+60x60", TAKEN: "9x60"},
        50,
    ),
    "LeverwatchWatermarkStandsStill, not while history is loaded": Case(
        {"leverwatch_watermark_lag_seconds": "1200x60", TAKEN: "0+10x60"},
        {"leverwatch_watermark_lag_seconds": "36000-300x60", TAKEN: "0+10x60"},
        50,
    ),
    "LeverwatchBlocksCloseLate": Case(
        {"leverwatch_newest_block_age_seconds": "4000x40", "leverwatch_watermark_lag_seconds": "5x40"},
        {"leverwatch_newest_block_age_seconds": "4000x40", "leverwatch_watermark_lag_seconds": "3700x40"},
    ),
    "LeverwatchJudgingLate": one("leverwatch_judged_timestamp_seconds", "60x40", "0+60x40"),
    "LeverwatchJudgingLate, never since the start": Case(
        {"leverwatch_uptime_seconds": "0+60x40", "leverwatch_jobs_failing": "1x40"}, {"leverwatch_uptime_seconds": "0+60x40"}
    ),
    "LeverwatchStreamsFrozen": one(KEEP % "frozen", "2x60", "0x60", 45),
    "LeverwatchDecidesNothing": Case({KEEP % "insufficient": "4x500"}, {KEEP % "insufficient": "4x500", KEEP % "keep": "1x500"}, 450),
    "LeverwatchFlipsAtOnce": one('leverwatch_flips{policy="p",lever="l",state="off_recommended"}', "0+2x60", "40x60", 50),
    "LeverwatchNoticeGivenUp": one('leverwatch_deliveries_given_up{receiver="pager"}', "0x5 1x40", "0x40"),
    "LeverwatchNoticeWaits": one('leverwatch_delivery_oldest_waiting_timestamp_seconds{receiver="pager"}', "60x60", "0+60x60", 45),
    "LeverwatchReceiverStopped": one('leverwatch_receiver_stopped{receiver="pager"}', "1x40", "0x40"),
    "LeverwatchHeartbeatLost": one('leverwatch_heartbeat_delivered{receiver="pager"}', "0x40", "1x40"),
    "LeverwatchPagesFail": Case({ANSWERED: "0+10x40", BROKEN: "0+1x40"}, {ANSWERED: "0+100x40", BROKEN: "0+1x40"}),
    "LeverwatchPagesSlow": Case(
        {CALL % "5.0": "0+1x60", CALL % "10.0": "0+10x60", CALL % "+Inf": "0+10x60"},
        {CALL % "5.0": "0+10x60", CALL % "10.0": "0+10x60", CALL % "+Inf": "0+10x60"},
        45,
    ),
    "LeverwatchSqlKilled": one('leverwatch_sql_statements_total{outcome="memory_limit"}', "0+1x40", "7x40"),
    "LeverwatchSqlCrowded": one('leverwatch_sql_statements_total{outcome="busy"}', "0+1x40", "7x40"),
    "LeverwatchDrawingFails": one('leverwatch_drawing_failures_total{reason="crashed"}', "0+1x40", "7x40"),
    "LeverwatchKafkaLags": one('leverwatch_kafka_lag_messages{topic="t",partition="0"}', "0+100x60", "6000-100x60", 50),
    "LeverwatchKafkaPaused": one("leverwatch_kafka_paused", "1x40", "0x40"),
    "LeverwatchKafkaSetsAside": one('leverwatch_kafka_messages_total{topic="t",outcome="set_aside"}', "0+1x40", "7x40"),
    "LeverwatchCollectorCannotCommit": one("leverwatch_collect_failing", "1x40", "0x40"),
    "LeverwatchRoundsLate": one("leverwatch_lake_round_age_seconds", "0+60x60", "30x60", 45),
    "LeverwatchTasksFail": one("leverwatch_work_failing_tasks", "1x40", "0x40"),
    "LeverwatchWorkerFails": Case(
        {'leverwatch_work_rounds_total{outcome="failed"}': "0+1x40", "leverwatch_work_last_success_timestamp_seconds": "0+60x40"},
        {'leverwatch_work_rounds_total{outcome="failed"}': "3x40", "leverwatch_work_last_success_timestamp_seconds": "0+60x40"},
    ),
}


def with_target(series: str) -> str:
    """A series as it is scraped: with the labels of its target."""
    name, _, labels = series.partition("{")
    return f'{name}{{instance="a:8080",job="leverwatch"{"," + labels if labels else "}"}'


def tests(rule: str, case: Case) -> list[dict[str, Any]]:
    """Both halves of a case as promtool takes them."""
    found = []
    for series, count in ((case.firing, 1), (case.quiet, 0)):
        asked = f'count(ALERTS{{alertname="{rule}",alertstate="firing"}})'
        expected = {"expr": asked, "eval_time": f"{case.at_m}m", "exp_samples": [{"labels": "{}", "value": 1}] if count else []}
        inputs = [{"series": with_target(name), "values": values} for name, values in series.items()]
        name = f"{rule} {'fires' if count else 'stays quiet'}"
        found.append({"name": name, "interval": "1m", "input_series": inputs, "promql_expr_test": [expected]})
    return found
