"""`leverwatch serve`: one process that receives, computes, judges, delivers and shows. Starts whole, stops clean."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import grpc.aio

from alerts.couriers import Couriers
from collectors import decode, otlp_grpc
from collectors.door import Door, reference_check
from collectors.kafka import KafkaReader
from collectors.kafka_body import keep_in
from collectors.warm import warm
from dashboards.security import Headed
from leverwatch import allocator, app, deployment, exposure, kafka_reading, lake_room, not_http, policies_emptied, serve_file
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.lake_room import LakeRoom
from leverwatch.listening import ServeError, Uvicorn, address, listen, otlp_app, port_of
from leverwatch.locks import Locks
from leverwatch.observe import starting
from leverwatch.observe.observer import Observer
from leverwatch.observe.web import Watched
from leverwatch.receiving import Receiving
from leverwatch.serve_file import Addresses
from leverwatch.served_numbers import ServedNumbers
from leverwatch.worker import Worker
from queries import report_kernels

DRAIN_S = 6.0
GRACE_S = 2.0
SQL_BEHIND_S = 2.0  # how old the copy of hot rows may be that ad-hoc SQL reads, so that not each question makes a new one


def serve(folder: Path, config: Config, announce: Callable[[Addresses], None]) -> None:
    """Serves a data folder until SIGTERM or SIGINT. `announce` gets the addresses once everything listens.

    Raises:
        ServeError: the folder is served already, an address is taken, or the store gave itself up while it ran.
        AccessError, TlsError, ExposedError: a token or certificate cannot be used, or a port would be open to the network.
        OwnIngestError, ObserveMissingError: its own spans would go into itself, or what sends them is not installed.
    """
    allocator.keep_freed_memory()
    running = serve_file.live(folder)
    if running:
        msg = f"{folder} is served already, by process {running.pid} at {running.url}"
        raise ServeError(msg)
    where = config.serve
    locks = Locks(config, os.environ)
    exposure.check(where, locks.tokens, locks.certificates)
    starting.refuse_own(config.observe, where.host, (where.port, where.otlp_http_port, where.grpc_port))
    web_socket = listen(where.host, where.port, "--port")
    otlp_socket = listen(where.host, where.otlp_http_port, "--otlp-http-port")
    listen(where.host, where.grpc_port, "--grpc-port").close()  # so that a taken port is told before the folder is made
    room = lake_room.opened(folder, config, sql_behind_s=SQL_BEHIND_S)
    try:
        policies_emptied.check(room.store, config.alerts.policies, room.policies)
        room.rounds.is_server = True
        deployment.publish(room.store, config)
        asyncio.run(_Server(room, locks, web_socket, otlp_socket).run(announce))
    finally:
        serve_file.remove(folder)
        room.close()


def door_of(room: EngineRoom, observer: Observer) -> Door:
    """What receivers ask: of the spool, or of the lake."""
    told = observer.handled
    if isinstance(room, LakeRoom):
        return Door(room.sink, time.time_ns, room.sink.note, reference_check, waiting=None, told=told)
    return Door(room.spool, time.time_ns, room.loader.note, reference_check, waiting=room.loader.waiting, told=told)


def kafka_of(room: EngineRoom, door: Door) -> KafkaReader | None:
    """What reads topics, if any: into the spool, or into the lake."""
    if isinstance(room, LakeRoom):
        return kafka_reading.into_lake(room.config, room.reading.lake, keep_in(room.folder))
    return kafka_reading.into_spool(room.config, room.folder, door)


class _Server:
    """The listeners and threads of one running server."""

    def __init__(self, room: EngineRoom, locks: Locks, web_socket: socket.socket, otlp_socket: socket.socket) -> None:
        self.locks = locks
        self.room, self.web_socket, self.otlp_socket = room, web_socket, otlp_socket
        self.observer = observer = Observer()
        self.couriers = Couriers(room.store, room.config.receivers, room.clock, os.environ, told=observer.tried)
        self.worker = Worker(room, self.couriers, observer=observer)
        self.door = door_of(room, observer)
        is_tls = locks.certificates is not None
        kafka = kafka_of(room, self.door)
        self.receiving = Receiving.through(self.door, room.config.scrape, port_of(otlp_socket), is_tls=is_tls, kafka=kafka)
        room.lags = self.receiving.lags

    async def run(self, announce: Callable[[Addresses], None]) -> None:
        """Starts everything, waits for the signal to stop, stops everything."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.worker.on_fatal = functools.partial(loop.call_soon_threadsafe, stop.set)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        where = self.room.config.serve
        try:
            grpc_server, grpc_port = await otlp_grpc.start(self.door, address(where.host, where.grpc_port), **self.locks.grpc())
        except OSError as error:
            raise ServeError(str(error)) from error
        asked, ports = self.room.config.observe, (port_of(self.web_socket), port_of(self.otlp_socket), grpc_port)
        starting.refuse_own(asked, where.host, ports)
        locks = self.locks
        numbers = ServedNumbers(self.room, self.worker, locks.refused, self.receiving)
        self.observer.tracing = starting.started(asked, "serve", numbers.families)
        application = app.pages(self.room, self.worker, self.couriers, locks.refused, self.receiving, numbers)
        web = Watched(locks.web(application, self.receiving.otlp_http_port), self.observer)
        pages = Uvicorn(Headed(web), locks.certificates, "web")
        otlp = Uvicorn(locks.otlp(otlp_app(self.door, port_of(self.web_socket))), locks.certificates, "otlp_http")
        logging.getLogger(not_http.LOGGER).addFilter(not_http.Hint(grpc_port, is_tls=locks.certificates is not None))
        tasks = [asyncio.create_task(pages.serve([self.web_socket])), asyncio.create_task(otlp.serve([self.otlp_socket]))]
        self.couriers.start()
        self.worker.start()
        self.receiving.start()
        threading.Thread(target=self._compile, name="compile", daemon=True).start()
        scheme = "https" if locks.certificates else "http"
        addresses = Addresses(
            pid=os.getpid(),
            url=f"{scheme}://{address(where.host, port_of(self.web_socket))}",
            otlp_grpc=address(where.host, grpc_port),
            otlp_http=f"{scheme}://{address(where.host, port_of(self.otlp_socket))}",
        )
        self.room.rounds.base_url = self.room.rounds.base_url or addresses.url
        serve_file.write(self.room.folder, addresses, self.locks.local())
        announce(addresses)
        await stop.wait()
        await self._stop(grpc_server, [pages, otlp], tasks)
        if self.worker.has_failed:
            msg = "the store has given itself up (is the disk full?); what was acknowledged is in the spool and is loaded at the next start"
            raise ServeError(msg)

    async def _stop(self, grpc_server: grpc.aio.Server, servers: list[Uvicorn], tasks: list[asyncio.Task[None]]) -> None:
        """Refuses new exports, lets those at the door finish, loads and assembles what was acknowledged."""
        self.door.closed = True
        await self.receiving.stop(GRACE_S)
        for server in servers:
            server.should_exit = True
        await grpc_server.stop(GRACE_S)
        await asyncio.wait(tasks, timeout=GRACE_S)
        await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        self.worker.stop()
        try:
            if not self.worker.has_failed:
                self.room.drain(DRAIN_S)
                if left := self.room.spool.backlog_bytes:
                    logging.getLogger(__name__).warning("stopped with %d bytes in the spool, which are loaded at the next start", left)
        finally:
            self.couriers.stop(GRACE_S)
            self.observer.tracing.close()

    def _compile(self) -> None:
        """Compiles the decoder's kernels, then lets the door use them instead of the reference parser; and those of reports."""
        warm()
        self.door.check = decode.check
        report_kernels.warm()
