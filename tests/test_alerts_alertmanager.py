"""Debian's Alertmanager takes, groups, silences and resolves our alerts, and its amtool reads the webhook body."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import alert_letters
import httpx
import pytest
from alert_letters import Hook, letter

from alerts import alert_rows, channels_alertmanager, channels_webhook
from alerts.channels import Route
from alerts.receivers import Receiver

SERVER, TOOL = "prometheus-alertmanager", "amtool"
CONFIG = """
route: {receiver: hook, group_by: [alertname, lever], group_wait: 50ms, group_interval: 200ms, repeat_interval: 1h}
receivers: [{name: hook, webhook_configs: [{url: "URL/am", send_resolved: true}]}]
"""


class Running(NamedTuple):
    """An Alertmanager on loopback, and the hook that it notifies."""

    url: str
    hook: Hook
    route: Route

    def tool(self, *arguments: str) -> str:
        """What amtool answers."""
        asked = [TOOL, *arguments, f"--alertmanager.url={self.url}"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that it holds."""
        answered = httpx.get(f"{self.url}/api/v2/alerts", timeout=5)
        found: list[dict[str, Any]] = answered.json()
        return found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    missing = [name for name in (SERVER, TOOL) if not shutil.which(name)]
    if missing:
        said = f"no {' and no '.join(missing)} here; Debian's package prometheus-alertmanager has both"
        if os.environ.get("LEVERWATCH_REQUIRE_ALERTMANAGER") == "1":
            pytest.fail(said)
        pytest.skip(said)
    folder = tmp_path_factory.mktemp("alertmanager")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with alert_letters.hook() as hook, alert_letters.client() as client, (folder / "log").open("w") as log:
        (folder / "config.yml").write_text(CONFIG.replace("URL", hook.url), encoding="utf-8")
        places = [f"--config.file={folder / 'config.yml'}", f"--storage.path={folder / 'data'}"]
        ports = [f"--web.listen-address={address}", "--cluster.listen-address="]
        process = subprocess.Popen([SERVER, *places, *ports], stdout=log, stderr=log)
        try:
            url = f"http://{address}"
            assert eventually(lambda: _is_ready(url)), (folder / "log").read_text(encoding="utf-8")
            receiver = Receiver(name="am", kind="alertmanager", url=url)
            yield Running(url, hook, alert_letters.route(receiver, "", client))
        finally:
            process.terminate()
            process.wait(10)


def test_it_takes_an_alert_under_our_fingerprint_with_all_that_people_need(running: Running) -> None:
    push(running, "taken")
    [alert] = [alert for alert in running.alerts() if alert["labels"]["model"] == "taken"]
    assert alert["labels"] == {
        "alertname": "LeverDisable",
        "lever": "speculation",
        "policy": "speculation",
        "severity": "critical",
        "action": "disable",
        "model": "taken",
    }
    assert alert["fingerprint"] == alert_rows.fingerprint(alert["labels"])
    assert alert["annotations"]["description"].startswith("net ITL 31 ms")
    assert alert["generatorURL"] == alert_letters.LINKS["page"]
    assert alert["status"]["state"] == "active"


def test_it_groups_alerts_of_a_lever_into_one_notice(running: Running) -> None:
    assert push(running, "first", "second").status_code == 200
    assert eventually(lambda: any({"first", "second"} <= models(body) for body in running.hook.bodies))


def test_an_alert_that_ended_is_resolved_and_notified_so(running: Running) -> None:
    push(running, "ending")
    assert eventually(lambda: any("ending" in models(body) for body in running.hook.bodies))
    push(running, "ending", kind="lever.resolved", action="keep", severity=None)
    assert eventually(lambda: any("ending" in models(body, "resolved") for body in running.hook.bodies))
    assert "ending" not in {alert["labels"]["model"] for alert in running.alerts()}


def test_a_silence_by_our_labels_holds_our_alert_back(running: Running) -> None:
    running.tool("silence", "add", "lever=speculation", "model=silenced", "--comment=test", "--author=test")
    push(running, "silenced")
    push(running, "spoken")
    assert eventually(lambda: any("spoken" in models(body) for body in running.hook.bodies))
    assert not any("silenced" in models(body) for body in running.hook.bodies)
    [alert] = [alert for alert in running.alerts() if alert["labels"]["model"] == "silenced"]
    assert alert["status"]["state"] == "suppressed"


def test_amtool_finds_what_was_pushed(running: Running) -> None:
    push(running, "queried")
    found = json.loads(running.tool("alert", "query", "model=queried", "-o", "json"))
    assert [alert["labels"]["alertname"] for alert in found] == ["LeverDisable"]


def test_amtool_reads_the_webhook_body(running: Running, tmp_path: Path) -> None:
    to = Receiver(name="v4", url=f"{running.hook.url}/v4", format="alertmanager")
    channels_webhook.send(running.route._replace(receiver=to), [letter()], datetime.now(UTC))
    [body] = [text for path, _, text in running.hook.got if path == "/v4"]
    (tmp_path / "body.json").write_text(body, encoding="utf-8")
    (tmp_path / "none.tmpl").write_text("", encoding="utf-8")
    text = "{{.Status}} {{.Receiver}} {{.GroupLabels.lever}} {{len .Alerts.Firing}} {{.CommonLabels.model}} {{.CommonAnnotations.summary}}"
    options = [f"--template.glob={tmp_path / 'none.tmpl'}", f"--template.text={text}", f"--template.data={tmp_path / 'body.json'}"]
    read = running.tool("template", "render", *options)
    assert read.strip() == "firing v4 speculation 1 llama-70b [critical] disable speculation: model=llama-70b, hardware=H200"


def test_our_webhook_body_has_the_keys_that_alertmanagers_own_has(running: Running) -> None:
    push(running, "shaped")
    assert eventually(lambda: any("shaped" in models(body) for body in running.hook.bodies))
    theirs = next(body for body in running.hook.bodies if "shaped" in models(body))
    ours = json.loads(alert_rows.webhook_body(letter(), "v4", datetime.now(UTC)))
    assert set(ours) == set(theirs)
    assert set(ours["alerts"][0]) == set(theirs["alerts"][0])
    assert (ours["version"], ours["alerts"][0]["endsAt"]) == (theirs["version"], theirs["alerts"][0]["endsAt"])


def push(running: Running, *names: str, kind: str = "lever.disable", **changes: Any) -> Any:
    """Pushes a letter for each model, of a minute ago; what is over ends what was opened then."""
    now = datetime.now(UTC)
    opened = [
        letter(at=now - timedelta(minutes=1), segment={"model": name}).message if kind == "lever.resolved" else None for name in names
    ]
    told = [letter(kind, at=now, segment={"model": name}, opened=was, **changes) for name, was in zip(names, opened, strict=True)]
    alerts = [alert for one in told for alert in alert_rows.alerts(one, now)]
    return channels_alertmanager.push(running.route, alerts, now)


def models(body: dict[str, Any], status: str = "firing") -> set[str]:
    """The models whose alerts a notice of Alertmanager has in a status."""
    return {alert["labels"].get("model", "") for alert in body.get("alerts", ()) if alert["status"] == status}


def eventually(claim: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    """Whether a claim about another process comes true within a time."""
    until_s = time.monotonic() + timeout_s
    while time.monotonic() < until_s:
        if claim():
            return True
        time.sleep(0.02)
    return False


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", timeout=1).is_success
    except httpx.HTTPError:
        return False
