"""An address and how asking it failed in, a sentence out that says what to do: TLS fails in ways that do not name their remedy."""

from __future__ import annotations

import httpx

CLIENT_FILES = "$LEVERWATCH_CLIENT_CERT_FILE and $LEVERWATCH_CLIENT_KEY_FILE"
RUNNING = "is `leverwatch serve` running there?"


def said(url: str, error: httpx.HTTPError) -> str:
    """Where, what failed, and what is taken instead or is to be looked at."""
    return f"{url}: {str(error).rstrip('.') or type(error).__name__}; {_remedy(url, error)}"


def _remedy(url: str, error: httpx.HTTPError) -> str:
    told, is_tls = str(error), url.startswith("https://")
    if "Hostname mismatch" in told or "IP address mismatch" in told:
        return "ask for it by a name that its certificate bears"
    if "CERTIFICATE_VERIFY_FAILED" in told:
        return "--ca-file FILE or $LEVERWATCH_CA_FILE takes the authority that its certificate is of, PEM"
    if "WRONG_VERSION_NUMBER" in told or "RECORD_LAYER_FAILURE" in told.replace(" ", "_").upper():
        return "the port speaks no TLS: an address that begins with http:// is taken"
    if "SSL" in told or "ALERT" in told:
        return f"a server with [tls] client_ca_file asks for a certificate of its authority: {CLIENT_FILES} take one"
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError):
        if is_tls:
            return f"where it has [tls] client_ca_file, it lets in those alone who show a certificate: {CLIENT_FILES} take one"
        return f"where it speaks TLS, an address that begins with https:// is taken; else: {RUNNING}"
    return RUNNING
