"""`leverwatch collect`: one of any number of processes that receive exports and write them into a lake. It keeps nothing of its own."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import signal
import socket
import time
from collections.abc import Callable

import grpc.aio

from collectors import decode, otlp_grpc
from collectors.door import Door
from collectors.kafka import KafkaReader
from collectors.kafka_body import keep_where_it_is
from collectors.lake_batch import LakeReader
from collectors.lake_sink import LakeSink, Pace
from collectors.warm import warm
from dashboards.security import Headed
from leverwatch import allocator, collect_app, deployment, exposure, kafka_reading, not_http
from leverwatch.config import Config, ConfigError
from leverwatch.listening import ServeError, Uvicorn, address, listen, otlp_app, port_of
from leverwatch.locks import Locks
from leverwatch.observe import starting
from leverwatch.observe.observer import Observer
from leverwatch.observe.web import Watched
from leverwatch.receiving import Receiving
from leverwatch.serve_file import Addresses
from leverwatch.store_settings import NAMES_A_LAKE
from queries.lake import Lake

GRACE_S, COMMIT_GRACE_S = 2.0, 10.0


def collect(config: Config, announce: Callable[[Addresses], None]) -> None:
    """Collects until SIGTERM or SIGINT. `announce` gets the addresses once everything listens.

    Raises:
        ConfigError: the configuration names no lake.
        LakeError: what writes a lake is not installed.
        ServeError: an address is taken.
        KafkaMissingError, KafkaOptionError: Kafka cannot be read as it is configured.
        AccessError, TlsError, ExposedError: a token or certificate cannot be used, or a port would be open to the network.
        OwnIngestError, ObserveMissingError: its own spans would go into itself, or what sends them is not installed.
    """
    allocator.keep_freed_memory()
    where, store = config.serve, config.store
    if not store.is_lake:
        msg = f"[store] kind = 'embedded' has no collectors of its own: `leverwatch serve` receives; {NAMES_A_LAKE}"
        raise ConfigError(msg)
    locks = Locks(config, os.environ)
    exposure.check(where, locks.tokens, locks.certificates)
    starting.refuse_own(config.observe, where.host, (where.port, where.otlp_http_port, where.grpc_port))
    web_socket = listen(where.host, where.port, "--port")
    otlp_socket = listen(where.host, where.otlp_http_port, "--otlp-http-port")
    listen(where.host, where.grpc_port, "--grpc-port").close()
    lake = Lake.open(store.uri, store.options)
    reader = LakeReader(deployment.of(config))
    warm()  # nothing is kept here that could be decoded later
    pace = Pace(store.commit_interval_s, store.commit_bytes, store.limit_backlog_bytes)
    kafka = kafka_reading.into_lake(config, lake, keep_where_it_is)
    sink = LakeSink(lake, reader, pace)
    try:
        asyncio.run(_Collector(config, sink, locks, web_socket, otlp_socket, kafka).run(announce))
    finally:
        sink.close()


class _Collector:
    """The listeners of one running collector."""

    def __init__(
        self, config: Config, sink: LakeSink, locks: Locks, web_socket: socket.socket, otlp_socket: socket.socket, kafka: KafkaReader | None
    ) -> None:
        self.config, self.sink, self.locks = config, sink, locks
        self.web_socket, self.otlp_socket = web_socket, otlp_socket
        self.observer = Observer()
        self.door = Door(sink, time.time_ns, sink.note, decode.check, waiting=None, told=self.observer.handled)
        is_tls = locks.certificates is not None
        self.receiving = Receiving.through(self.door, config.scrape, port_of(otlp_socket), is_tls=is_tls, kafka=kafka)

    async def run(self, announce: Callable[[Addresses], None]) -> None:
        """Starts everything, waits for the signal to stop, stops everything."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        where, locks = self.config.serve, self.locks
        try:
            grpc_server, grpc_port = await otlp_grpc.start(self.door, address(where.host, where.grpc_port), **locks.grpc())
        except OSError as error:
            raise ServeError(str(error)) from error
        asked, ports = self.config.observe, (port_of(self.web_socket), port_of(self.otlp_socket), grpc_port)
        starting.refuse_own(asked, where.host, ports)
        numbers = functools.partial(collect_app.families, self.sink, locks.refused, self.receiving, self.observer)
        self.observer.tracing = starting.started(asked, "collect", numbers)
        application = collect_app.application(self.sink, self.receiving, numbers)
        web = Watched(locks.web(application, self.receiving.otlp_http_port), self.observer)
        servers = [
            Uvicorn(Headed(web), locks.certificates, "web"),
            Uvicorn(locks.otlp(otlp_app(self.door, port_of(self.web_socket))), locks.certificates, "otlp_http"),
        ]
        logging.getLogger(not_http.LOGGER).addFilter(not_http.Hint(grpc_port, is_tls=locks.certificates is not None))
        sockets = (self.web_socket, self.otlp_socket)
        tasks = [asyncio.create_task(server.serve([bound])) for server, bound in zip(servers, sockets, strict=True)]
        self.receiving.start()
        announce(self._addresses(grpc_port))
        await stop.wait()
        await self._stop(grpc_server, servers, tasks)

    def _addresses(self, grpc_port: int) -> Addresses:
        host, scheme = self.config.serve.host, "https" if self.locks.certificates else "http"
        web, otlp = (f"{scheme}://{address(host, port_of(bound))}" for bound in (self.web_socket, self.otlp_socket))
        return Addresses(os.getpid(), web, address(host, grpc_port), otlp)

    async def _stop(self, grpc_server: grpc.aio.Server, servers: list[Uvicorn], tasks: list[asyncio.Task[None]]) -> None:
        """Refuses new exports, and lets those at the door be stored and answered."""
        self.door.closed = True
        await self.receiving.stop(COMMIT_GRACE_S)
        await asyncio.to_thread(self.sink.close)
        for server in servers:
            server.should_exit = True
        await grpc_server.stop(GRACE_S)
        await asyncio.wait(tasks, timeout=GRACE_S)
        await asyncio.to_thread(self.observer.tracing.close)
