"""Mail: letters in, one message with text, HTML and the notices as files out, by SMTP."""

from __future__ import annotations

import contextlib
import html
import smtplib
import ssl
from collections.abc import Iterator, Sequence
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr

from alerts import canonical, notice_text
from alerts.channels import TIMEOUT_S, DeliveryError, Letter, Route, Sent
from alerts.credentials import redacted
from alerts.receivers import Receiver

MOST_LETTERS = 50
PORTS = {"starttls": 587, "tls": 465, "none": 25}
_LIMIT_SAID = 200


def send(route: Route, letters: Sequence[Letter], now: datetime) -> Sent:
    """Sends letters as one mail.

    Raises:
        DeliveryError: it was not taken; for good where the server refuses the mail, its sender or all who shall get it (5xx).
    """
    receiver, password = route.receiver, route.secret_now()
    mail = message(receiver, letters, now)
    try:
        with _connection(receiver, password) as server:
            refused = server.send_message(mail)
    except smtplib.SMTPException as error:
        raise _refusal(error, password) from None
    except OSError as error:
        msg = f"{type(error).__name__}: {redacted(str(error), password)}"
        raise DeliveryError(msg, permanent=False) from None
    except UnicodeError:
        msg = "user, password or host have characters that SMTP does not take"
        raise DeliveryError(msg, permanent=False) from None
    return Sent(250, _said(refused) if refused else None)


def message(receiver: Receiver, letters: Sequence[Letter], now: datetime) -> EmailMessage:
    """The mail of some letters. Its `Message-ID` is the same at every attempt; mails of one stream are one thread."""
    messages = [letter.message for letter in letters]
    mail, domain = EmailMessage(), _domain(receiver)
    mail["Subject"] = _plain(notice_text.headline(messages))
    mail["From"] = receiver.sender
    mail["To"] = ", ".join(receiver.to)
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = f"<{_id(letters)}@{domain}>"
    if len(letters) == 1 and messages[0].data.get("policy"):
        mail["References"] = f"<{_thread(letters[0])}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Leverwatch-Type"] = ", ".join(sorted({one.type for one in messages}))
    mail["X-Webhook-Id"] = " ".join(letter.webhook_id for letter in letters)
    texts = [notice_text.whole(one, now) for one in messages]
    mail.set_content("\n\n\n".join(texts) + "\n")
    mail.add_alternative("<hr>".join(_html(text) for text in texts), subtype="html")
    for letter in letters:
        mail.add_attachment(letter.text.encode(), maintype="application", subtype="json", filename=f"{letter.webhook_id}.json")
    return mail


@contextlib.contextmanager
def _connection(receiver: Receiver, password: str) -> Iterator[smtplib.SMTP]:
    """A session with the mail server, as secret as was asked, logged in."""
    host, port = receiver.host or "", receiver.port or PORTS[receiver.security]
    context = ssl.create_default_context()
    server = (
        smtplib.SMTP_SSL(host, port, timeout=TIMEOUT_S, context=context)
        if receiver.security == "tls"
        else smtplib.SMTP(host, port, timeout=TIMEOUT_S)
    )
    try:
        if receiver.security == "starttls":
            server.starttls(context=context)
        if receiver.username is not None:
            server.login(receiver.username, password)
        yield server
    finally:
        # A server that hangs up after it took the mail took it all the same.
        with contextlib.suppress(smtplib.SMTPException, OSError):
            server.quit()
        server.close()


def _refusal(error: smtplib.SMTPException, password: str) -> DeliveryError:
    """What a server said no with. A login that fails is not for good: the mail can go once the password is right."""
    code, said = getattr(error, "smtp_code", None), str(error)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, said = max(number for number, _ in error.recipients.values()), _said(error.recipients)
        permanent = all(number >= 500 for number, _ in error.recipients.values())
    else:
        permanent = isinstance(error, smtplib.SMTPSenderRefused | smtplib.SMTPDataError) and code is not None and code >= 500
    text = notice_text.cut(redacted(f"{type(error).__name__}: {said}", password), _LIMIT_SAID)
    return DeliveryError(text, permanent=permanent, status_code=code)


def _said(refused: dict[str, tuple[int, bytes]]) -> str:
    texts = (f"{address}: {code} {said.decode(errors='replace')}" for address, (code, said) in refused.items())
    return notice_text.cut(f"refused for {'; '.join(texts)}", _LIMIT_SAID)


def _plain(text: str) -> str:
    """A headline without what a header reads as more than text: an encoded word may decode to line breaks, which begin other headers."""
    return "".join(char for char in text.replace("=?", "= ?") if char.isprintable())


def _id(letters: Sequence[Letter]) -> str:
    names = sorted(letter.webhook_id for letter in letters)
    return names[0] if len(names) == 1 else f"grp_{canonical.digest(names)[:32]}"


def _thread(letter: Letter) -> str:
    data = letter.message.data
    return f"stream_{canonical.digest([data.get('policy'), data.get('lever'), data.get('segment')])[:32]}"


def _domain(receiver: Receiver) -> str:
    return parseaddr(receiver.sender or "")[1].rpartition("@")[2]


def _html(text: str) -> str:
    head, *parts = text.split("\n\n")
    return f"<h3>{html.escape(head)}</h3>" + "".join(_block(part.split("\n")) for part in parts)


def _block(lines: Sequence[str]) -> str:
    """A paragraph, or a list under its head; what is to be pasted into a shell stands as it is."""
    head, *items = [html.escape(line, quote=False) for line in lines]
    if not all(item.startswith("- ") for item in items):
        return f"<p>{'<br>'.join((head, *items))}</p>"
    listed = "".join(f"<li>{_code(item.removeprefix('- '))}</li>" for item in items)
    return f"<p><b>{head}</b></p><ul>{listed}</ul>" if items else f"<p>{head}</p>"


def _code(item: str) -> str:
    if item.startswith(("leverwatch ", "curl ")):
        return f"<code>{item}</code>"
    head, sign, address = item.partition(": ")
    is_link = address.startswith(("http://", "https://"))
    return f'{head}{sign}<a href="{address.replace(chr(34), "%22")}">{address}</a>' if is_link else item
