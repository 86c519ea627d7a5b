"""Tokens: which opens what, what a configuration may name, sessions that end."""

from __future__ import annotations

from pathlib import Path

import pytest

from leverwatch import access
from leverwatch.access import AccessError, Tokens
from leverwatch.access_settings import Access, Token

INGEST, READ, ADMIN = "ingest-token-0001", "read-token-000001", "admin-token-00001"


@pytest.fixture
def tokens() -> Tokens:
    return access.resolve(Access((Token(token=INGEST),), (Token(token=READ),), (Token(token=ADMIN),)), {})


@pytest.mark.parametrize(
    ("token", "levels"),
    [(INGEST, {"ingest"}), (READ, {"read"}), (ADMIN, {"ingest", "read", "admin"}), ("", set()), (READ + "x", set()), (READ[:-1], set())],
)
def test_a_token_opens_its_level_and_admins_open_every_one(tokens: Tokens, token: str, levels: set[str]) -> None:
    assert tokens.granted(token) == levels


def test_tokens_come_from_files_and_variables_too(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{READ}\n")
    named = access.resolve(Access(read=(Token(token_file=str(tmp_path / "token")), Token(token_env="MINE"))), {"MINE": ADMIN})
    assert named.granted(READ) == named.granted(ADMIN) == {"read"}


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (Token(), r"\[access\] read\[0\] takes exactly one of token, token_file and token_env, got none"),
        (Token(token=READ, token_env="X"), "got token and token_env"),
        (Token(token="short-secret"), "the token has 12 characters; 16 or more are taken"),
        (Token(token="with blanks in it is none"), "without blanks"),
        (Token(token_env="NOT_SET"), "the token of NOT_SET has 0 characters"),
        (Token(token_file="/nowhere/token"), "token_file /nowhere/token: No such file"),
    ],
)
def test_a_token_that_cannot_be_used_is_refused_by_its_place(token: Token, told: str) -> None:
    with pytest.raises(AccessError, match=told) as refused:
        access.resolve(Access(read=(token,)), {})
    assert "short-secret" not in str(refused.value)


def test_tokens_show_in_no_text_about_them(tokens: Tokens) -> None:
    assert READ not in repr(tokens) + str(tokens) + repr(tokens.with_local("local-secret"))


def test_a_session_ends_by_itself_and_with_its_token(tokens: Tokens) -> None:
    session = tokens.session(READ, 1000.0)
    assert READ not in session
    assert tokens.granted_session(session, 1000.0 + access.SESSION_S - 1) == {"read"}
    assert tokens.granted_session(session, 1000.0 + access.SESSION_S) == set()
    assert Tokens(admin=tokens.admin).granted_session(session, 1000.0) == set()


@pytest.mark.parametrize("change", ["", "x", "9999999999.", "9999999999.00", "-1.0", "é.0", "9" * 4000 + ".0"])
def test_a_session_that_was_not_made_here_opens_nothing(tokens: Tokens, change: str) -> None:
    assert tokens.granted_session(change, 0.0) == set()
    ends, _, seal = tokens.session(READ, 0.0).partition(".")
    assert tokens.granted_session(f"{int(ends) + 1}.{seal}", 0.0) == set()


def test_the_secret_of_a_run_opens_everything_and_guards_nothing() -> None:
    tokens = Tokens().with_local("local-secret")
    assert tokens.granted("local-secret") == {"ingest", "read", "admin"}
    assert not tokens.any


def test_who_shows_nothing_is_asked_and_who_shows_too_little_is_refused() -> None:
    asked = access.refusal("read", access.NOBODY, showed_token=False)
    refused = access.refusal("admin", frozenset(("read",)), showed_token=True)
    assert asked is not None
    assert refused is not None
    assert (asked.status_code, asked.code) == (401, "unauthenticated")
    assert (refused.status_code, refused.message) == (403, "this token may read; this needs admin")
    assert access.refusal("read", frozenset(("read",)), showed_token=True) is None


@pytest.mark.parametrize(("header", "token"), [("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Basic abc", ""), ("", ""), ("abc", "")])
def test_a_bearer_header_carries_its_token(header: str, token: str) -> None:
    assert access.bearer(header) == token
