"""The tap as a proxy: HTTP/1.1 in its awkward forms, an engine that fails, and the command itself."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest
from collectors_tap_app import PLAIN, STREAMED, Engine, Sent, asked, proxied, request, served

from collectors import response_tap
from collectors.response_tap import Chunked, Length, MessageError, Proxy, Tap

KEPT = "Connection: keep-alive"


def through(engine: Engine, *requests: bytes, sent: Sent | None = None) -> bytes:
    """What comes back on one connection to the proxy in front of an engine."""

    async def scenario() -> bytes:
        async with served(engine) as port, proxied((sent or Sent()).tap, port) as proxy:
            return await asked(proxy, *requests)

    return asyncio.run(scenario())


def before(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], asking: bytes, sent: Sent) -> bytes:
    """What comes back through the proxy from an upstream that is a bare function over a connection."""

    async def scenario() -> bytes:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with proxied(sent.tap, server.sockets[0].getsockname()[1]) as proxy:
            answer = await asked(proxy, asking)
        server.close()
        return answer

    return asyncio.run(scenario())


def test_requests_that_come_at_once_are_answered_in_order() -> None:
    sent, engine = Sent(), Engine()
    answer = through(
        engine,
        request("vllm", KEPT),
        request("vllm_stream", KEPT),
        request("nothing", KEPT),
        request("native", path="/generate"),
        sent=sent,
    )
    assert answer.count(b"HTTP/1.1 200 OK") == 3 and answer.count(b"HTTP/1.1 204") == 1
    assert answer.index(b"chat.completion.chunk") > answer.index(b'"chat.completion"')
    assert answer.endswith(json.dumps(PLAIN["native"][1]).encode())
    assert [span.attributes["leverwatch.body.status_code"] for span in sent.spans() if span.attributes] == [200, 200, 204, 200]


def test_an_answer_to_head_has_no_body_and_the_connection_goes_on() -> None:
    answer = through(Engine(), request("headers_only", KEPT, method="HEAD", body=b""), request("vllm"))
    assert b"content-length: 99\r\n" in answer
    assert answer.endswith(json.dumps(PLAIN["vllm"][1]).encode())


def test_a_chunked_request_passes_and_what_follows_it_is_the_next_request() -> None:
    engine = Engine()
    chunked = b"5\r\nhello\r\n6;name=value\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
    answer = through(engine, request("vllm", KEPT, "Transfer-Encoding: chunked", body=chunked), request("vllm", body=b"abc"))
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert engine.bodies == [11, 3]


def test_bodies_of_many_megabytes_pass_both_ways() -> None:
    engine, length = Engine(), 8 << 20
    answer = through(engine, request("large", body=b"x" * length))
    assert engine.bodies == [length]
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == PLAIN["large"][1]


def test_an_engine_asks_for_the_body_that_a_client_holds_back() -> None:
    async def scenario() -> list[bytes]:
        async with served(Engine()) as port, proxied(Sent().tap, port) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
            head, _, body = request("vllm", "Expect: 100-continue").partition(b"\r\n\r\n")
            writer.write(head + b"\r\n\r\n")
            interim = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            writer.write(body)
            final = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return [interim, final]

    interim, final = asyncio.run(scenario())
    assert interim.startswith(b"HTTP/1.1 100 ")
    assert final.startswith(b"HTTP/1.1 200 ")


def test_headers_of_one_hop_end_at_the_proxy_and_host_goes_on() -> None:
    engine = Engine()
    through(engine, request("vllm", "Keep-Alive: timeout=5", "X-Hop: 1", "X-End: 2", "Connection: close, X-Hop"))
    seen = engine.seen[0]
    assert seen["host"] == "example.test" and seen["x-end"] == "2"
    assert "keep-alive" not in seen and "x-hop" not in seen


@pytest.mark.parametrize("name", ["Content-Length", "Host"])
def test_no_connection_header_takes_a_requests_framing_or_host_away(name: str) -> None:
    engine = Engine()
    through(engine, request("vllm", f"Connection: close, {name}", body=b"hello"))
    assert engine.bodies == [5]
    assert (engine.seen[0]["content-length"], engine.seen[0]["host"]) == ("5", "example.test")


def test_no_connection_header_takes_the_coding_of_a_body_away() -> None:
    engine = Engine()
    through(engine, request("vllm", "Transfer-Encoding: chunked", "Connection: close, transfer-encoding", body=b"1\r\na\r\n0\r\n\r\n"))
    assert (engine.bodies, engine.seen[0]["transfer-encoding"]) == ([1], "chunked")


@pytest.mark.parametrize(
    ("asking", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nBad Header: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nhello", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding:\r\n\r\n", 400),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a\nhello\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a\rb\r\nhello\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\nx", 400),
        (b"CONNECT a:1 HTTP/1.1\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    ],
)
def test_a_request_that_can_be_read_two_ways_is_refused(asking: bytes, status: int) -> None:
    engine = Engine()
    answer = through(engine, asking)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == status
    assert engine.bodies in ([], [0])


def test_an_engine_that_is_not_there_is_a_502_and_an_error() -> None:
    sent = Sent()

    async def scenario() -> bytes:
        async with proxied(sent.tap, 1) as proxy:
            return await asked(proxy, request("vllm"))

    assert asyncio.run(scenario()).startswith(b"HTTP/1.1 502 Bad Gateway")
    assert sent.attributes()["outcome"] == "error"
    assert sent.attributes()["status_code"] == 502


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
def test_an_engine_that_answers_nonsense_is_a_502(said: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    sent = Sent()
    assert before(serve, request("vllm"), sent).startswith(b"HTTP/1.1 502 Bad Gateway")
    assert sent.attributes()["status_code"] == 502


@pytest.mark.parametrize("framing", [b"Transfer-Encoding: chunked\r\n\r\n1a\r\n", b"Content-Length: 999\r\n\r\n"])
def test_an_answer_that_is_cut_is_cut_for_the_client_too(framing: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framing + b'data: {"choices": []}\n\n')
        await writer.drain()
        writer.close()

    sent = Sent()
    try:
        answer = before(serve, request("vllm"), sent)
    except ConnectionResetError:
        answer = b""
    assert b"0\r\n\r\n" not in answer
    assert sent.attributes()["outcome"] == "aborted"


def test_an_answer_that_lasts_until_the_engine_closes_is_whole() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(STREAMED["vllm_stream"]))
        writer.close()

    sent = Sent()
    answer = before(serve, request("vllm", KEPT), sent)
    assert answer.endswith(b"data: [DONE]\n\n") and b"Connection: close" in answer
    assert sent.attributes()["cached_tokens"] == 512


def test_a_websocket_passes_both_ways_unread() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"Upgrade: websocket" in head and b"Connection: Upgrade" in head
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        writer.write((await reader.readexactly(4))[::-1])
        writer.close()

    sent = Sent()
    asking = request("x", "Upgrade: websocket", "Connection: Upgrade", method="GET", path="/v1/realtime", body=b"") + b"ping"
    assert before(serve, asking, sent).endswith(b"gnip")
    assert sent.spans() == []


def test_what_follows_a_request_for_a_websocket_waits_until_the_server_agrees() -> None:
    rest: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with contextlib.suppress(asyncio.TimeoutError):
            rest.append(await asyncio.wait_for(reader.read(1), 0.2))
        writer.write(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno")
        writer.close()

    asking = request("x", "Upgrade: websocket", "Connection: Upgrade", method="GET", body=b"") + b"GET /smuggled HTTP/1.1\r\n\r\n"
    answer = before(serve, asking, Sent())
    assert answer.startswith(b"HTTP/1.1 426 ") and answer.endswith(b"Connection: close\r\n\r\nno")
    assert rest == []


def test_a_server_that_changes_protocols_unasked_is_a_502() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"websocket" not in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        writer.close()

    assert before(serve, request("vllm", "Upgrade: websocket"), Sent()).startswith(b"HTTP/1.1 502 ")


def test_a_chunked_answer_goes_on_without_the_length_it_also_states() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        writer.close()

    answer = before(serve, request("vllm"), Sent())
    assert answer.endswith(b"5\r\nhello\r\n0\r\n\r\n") and b"Content-Length" not in answer


def test_bodies_end_where_their_framing_says() -> None:
    chunked = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nrest"
    for size in range(1, len(chunked)):
        body, content, used = Chunked(), b"", 0
        for at in range(0, len(chunked), size):
            took, part = body.take(chunked[at : at + size])
            used, content = used + took, content + part
        assert (content, used, body.is_done) == (b"abcde", len(chunked) - 4, True)
    body = Length(3)
    assert (body.take(b"ab"), body.take(b"cd"), body.is_done) == ((2, b"ab"), (1, b"c"), True)
    for broken in (b"3\r\nabcd\r\n", b"+3\r\nabc\r\n", b"0x3\r\n", b"\r\n"):
        with pytest.raises(MessageError, match="not a chunked body"):
            Chunked().take(broken)


@pytest.mark.parametrize("upstream", ["127.0.0.1:8000", "ftp://a", "http://a/path"])
def test_an_upstream_that_is_no_address_is_said(upstream: str) -> None:
    with pytest.raises(ValueError, match=r"an address such as http://127\.0\.0\.1:8000 is taken"):
        Proxy(Tap(), upstream)


def test_the_command_serves_until_it_is_told_to_stop() -> None:
    async def scenario() -> tuple[bytes, str, int]:
        async with served(Engine()) as port:
            command = [sys.executable, response_tap.__file__, "--upstream", f"http://127.0.0.1:{port}", "--listen", "127.0.0.1:0"]
            environment = {**os.environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
            process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE, env=environment)
            assert process.stderr is not None
            told = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
            at = int(told.partition("listening on 127.0.0.1:")[2].partition(",")[0])
            connection = http.client.HTTPConnection("127.0.0.1", at)

            def ask() -> bytes:
                connection.request("POST", "/v1/chat/completions?case=vllm", b"{}")
                return connection.getresponse().read()

            answers = [await asyncio.to_thread(ask) for _ in range(2)]
            connection.close()
            process.send_signal(signal.SIGTERM)
            status = await asyncio.wait_for(process.wait(), 30)
            return answers[1], told, status

    answer, told, status = asyncio.run(scenario())
    assert json.loads(answer) == PLAIN["vllm"][1]
    assert "listening on" in told
    assert status == 0
