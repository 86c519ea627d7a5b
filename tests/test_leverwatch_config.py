"""The configuration: refused with the place and the nearest known word, read once, overridden by the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from leverwatch.config import Config, ConfigError, read


def written(folder: Path, text: str) -> Path:
    path = folder / "leverwatch.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_everything_has_a_default(tmp_path: Path) -> None:
    assert read(None, tmp_path, {}) == Config()


def test_the_file_in_the_data_folder_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    written(tmp_path, "[serve]\nport = 9000\nhost = '127.0.0.2'\n")
    config = read(None, tmp_path, {"LEVERWATCH_SERVE_PORT": "9001", "LEVERWATCH_SQL_LIMIT_S": "2.5"})
    assert (config.serve.port, config.serve.host, config.sql.limit_s) == (9001, "127.0.0.2", 2.5)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[serv]\nport = 1\n", "key 'serv' is unknown; did you mean 'serve'?"),
        ("[serve]\nprot = 1\n", r"\[serve\] key 'prot' is unknown; did you mean 'port'?"),
        ("[serve]\nport = 'x'\n", r"\[serve\] port: Expected `int`, got `str`; taken: whole number"),
        ("[serve\n", "leverwatch.toml: "),
        ("[[receivers]]\nname = 'a'\nurl = 'http://127.0.0.1'\n", "takes exactly one of secret, secret_file and secret_env"),
        ("[[receivers]]\nname = 'a'\nurl = 'ftp://x'\nsecret = 'whsec_AAAA'\n", "url takes http"),
        ("[[receivers]]\nname = 'a'\nurll = 'http://x'\n", "urll"),
        ("[slo]\nttft_s = 0\n", r"\[slo\] ttft_s: Expected `float` > 0.0"),
        ("[slo]\ne2e_s = nan\n", r"\[slo\] e2e_s: Expected `float` > 0.0"),
        ("[slo]\ntpot = 1.0\n", r"\[slo\] key 'tpot' is unknown; did you mean 'tpot_s'?"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=told) as refused:
        read(path, tmp_path, {})
    assert str(path) in str(refused.value)


def test_a_variable_of_ours_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"LEVERWATCH_SERVE_PROT.*did you mean 'LEVERWATCH_SERVE_PORT'"):
        read(None, tmp_path, {"LEVERWATCH_SERVE_PROT": "1"})


def test_a_file_that_was_named_and_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read(tmp_path / "no.toml", tmp_path, {})


def test_a_variable_with_a_wrong_value_is_not_blamed_on_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^environment: LEVERWATCH_SERVE_PORT, \[serve\] port: Expected `int`, got `str`; taken: whole number$"
    ):
        read(None, tmp_path, {"LEVERWATCH_SERVE_PORT": "abc"})


def test_a_variable_of_a_list_takes_commas_or_json_and_one_of_tables_json(tmp_path: Path) -> None:
    config = read(
        None,
        tmp_path,
        {
            "LEVERWATCH_IDENTITY_TENANT_FROM": "team, customer",
            "LEVERWATCH_SERVE_HOSTS": '["a.example"]',
            "LEVERWATCH_ACCESS_READ": '[{"token_env": "READERS"}]',
            "LEVERWATCH_LINKS": '[{"topology": "pd", "peak_bytes_per_s": 5e10}]',
            "LEVERWATCH_DEFAULTS": '{"lever.speculation": "on"}',
            "LEVERWATCH_SERVE_ALLOW_OPEN": "true",
        },
    )
    assert (config.identity.tenant_from, config.serve.hosts) == (("team", "customer"), ("a.example",))
    assert config.access.read[0].token_env == "READERS"
    assert (config.links[0].peak_bytes_per_s, config.defaults, config.serve.allow_open) == (5e10, {"lever.speculation": "on"}, True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[access]\nread = [{ tokn = 'x' }]\n", r"\[access\] read: key 'tokn' is unknown; did you mean 'token'\?"),
        ("[[links]]\ntopologie = 'x'\n", r"\[\[links\]\] key 'topologie' is unknown; did you mean 'topology'\?"),
        (
            "[[links]]\npeak_bytes_per_s = 0\n",
            r"\[\[links\]\] peak_bytes_per_s \(table 1\): Expected `float` > 0.0; taken: number above 0$",
        ),
        ("[[prices]]\nhardware = 'h200'\n", "missing required field `usd_per_gpu_hour`"),
        ("[identity]\nhash = ['name']\n", r"\[identity\] hash\[.*\]: Invalid enum value 'name'; taken: `tenant`, `request_id`$"),
        ("[tls]\nclient_ca_ports = ['web', 'http']\n", "Invalid enum value 'http'"),
        ("[scrape]\nurl = 'http://x'\n", r"\[\[scrape\]\]: Expected `array`, got `object`; taken: tables, each under \[\[scrape\]\]$"),
        ("[[serve]]\nport = 1\n", r"\[serve\]: Expected `object`, got `array`; taken: one table, under \[serve\]$"),
        (
            "[[receivers]]\nname = 'a'\nurl = 'http://x'\nsecret = 'whsec_AAAA'\nkind = 'slack'\n",
            r"\[\[receivers\]\] kind \(table 1\): Invalid enum value 'slack'; taken: `webhook`, `alertmanager`, `chat`, `email`, `file`$",
        ),
        ("[access]\nread = [{ token = 1.5 }]\n", r"\[access\] read\[0\].token: Expected `str`, got `float`; taken: text$"),
        ("[alerts]\nbase_url = 'leverwatch.example'\n", r"\[alerts\] base_url = 'leverwatch.example': an address such as https://"),
        ("[identity]\nhashed = ['tenant']\n", r"\[identity\] key 'hashed' is unknown; did you mean 'hash'\?"),
    ],
)
def test_what_is_wrong_about_access_and_deployment_is_said_by_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read(written(tmp_path, text), tmp_path, {})


def test_a_variable_with_broken_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="environment: LEVERWATCH_LINKS: JSON is malformed"):
        read(None, tmp_path, {"LEVERWATCH_LINKS": "[{]"})


def test_relative_paths_are_taken_from_the_files_folder(tmp_path: Path) -> None:
    text = "[registry]\nfile = 'levers.csv'\n[tls]\ncert_file = '/a/b.pem'\n[access]\nread = [{ token_file = 'token' }]\n"
    config = read(written(tmp_path, text), tmp_path, {"LEVERWATCH_TLS_KEY_FILE": "key.pem"})
    assert (config.registry.file, config.tls.cert_file, config.tls.key_file) == (str(tmp_path / "levers.csv"), "/a/b.pem", "key.pem")
    assert config.access.read[0].token_file == str(tmp_path / "token")
    assert config.registry.file and not config.alerts.policies


def test_a_variable_that_overrides_a_file_is_named_where_its_value_is_wrong(tmp_path: Path) -> None:
    written(tmp_path, "[sql]\nlimit_s = 2\n[identity]\nhash = ['tenant']\n")
    with pytest.raises(ConfigError, match=r"^environment: LEVERWATCH_SQL_LIMIT_S, \[sql\] limit_s: Expected `float`, got `str`"):
        read(None, tmp_path, {"LEVERWATCH_SQL_LIMIT_S": "soon"})
    with pytest.raises(ConfigError, match=r"^environment: LEVERWATCH_IDENTITY_HASH, .*taken: `tenant`, `request_id`$"):
        read(None, tmp_path, {"LEVERWATCH_IDENTITY_HASH": "tenants"})
    with pytest.raises(ConfigError, match=r"^environment: LEVERWATCH_LINKS, .*; taken: number above 0$"):
        read(None, tmp_path, {"LEVERWATCH_LINKS": '[{"peak_bytes_per_s": "fast"}]'})
