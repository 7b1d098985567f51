"""What people write in mcp.json is read as they mean it; an error names the server, the key and what to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from botservice import SettingsError
from botservice.mcp.config import Approval, passwords_in, read_file, read_servers
from botservice.telemetry.logs import redact


def write(folder: Path, content: Any) -> Path:
    path = folder / "mcp.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_file_as_other_programs_have_it_is_read(tmp_path: Path) -> None:
    servers = {
        "files": {"command": "npx", "args": ["-y", "files", "${HOME}/x"], "env": {"TOKEN": "${FILES_TOKEN}"}},
        "my wiki": {
            "type": "http",
            "url": "https://wiki.example/mcp",
            "headers": {"Authorization": "Bearer ${WIKI:-x}"},
        },
        "off": {"command": "x", "disabled": True},
        "strict": {"command": "x", "tools": ["a"], "approval": "always", "timeout": 5, "autoApprove": ["a"]},
    }
    files, wiki, strict = read_file(
        write(tmp_path, {"mcpServers": servers}), {"HOME": "/h", "FILES_TOKEN": "t0k3n-of-files"}
    )
    assert (files.args, files.env["TOKEN"]) == (("-y", "files", "/h/x"), "t0k3n-of-files")
    assert (files.approval, files.timeout_seconds, files.tools) == (Approval.WRITES, 60.0, None)
    assert (wiki.prefix, wiki.url, wiki.headers) == (
        "my_wiki",
        "https://wiki.example/mcp",
        {"Authorization": "Bearer x"},
    )
    assert (strict.tools, strict.approval, strict.timeout_seconds) == ({"a"}, Approval.ALWAYS, 5.0)
    assert "t0k3n" not in repr(files)
    assert redact("t0k3n-of-files") == "[secret]"


@pytest.mark.parametrize(
    ("servers", "says"),
    [
        ({"a": {}}, "mcp.json: server 'a': it needs either a command, which is started here, or a url"),
        ({"a": {"command": "x", "url": "http://y"}}, "server 'a': it needs either"),
        ({"a": []}, "server 'a': it must be an object"),
        ({"a": {"command": "x", "approvals": "always"}}, "server 'a', approvals: there is no such key here; there are"),
        ({"a": {"command": "x", "approval": "maybe"}}, "server 'a', approval: it must be one of writes, always, never"),
        ({"a": {"command": "x", "trusted": "yes"}}, "server 'a', trusted: it must be true or false"),
        ({"a": {"command": "x", "roles": "owner"}}, "server 'a', roles: it must be a list of roles such as"),
        ({"a": {"command": "x", "roles": []}}, "server 'a', roles: it must be a list of roles such as"),
        ({"a": {"command": "x", "roles": {"b": ["Owner"]}}}, "server 'a', roles: it must be a list of roles such as"),
        ({"a": {"command": "x", "roles": None}}, "server 'a', roles: it must be a list of roles such as"),
        ({"a": {"command": "x", "roles": {}}}, "server 'a', roles: it must name at least one tool"),
        ({"a": {"command": "x", "roles": {" ": ["owner"]}}}, "server 'a', roles: it must name at least one tool"),
        ({"a": {"command": "x", "tools": ["b", ""]}}, "server 'a', tools: a tool in it has no name"),
        ({"a": {"command": "x", "timeout": 0}}, "server 'a', timeout: it must be a number of seconds above 0"),
        ({"a": {"command": "x", "args": "-y"}}, "server 'a', args: it must be a list of texts"),
        ({"a": {"command": "x", "env": {"K": 1}}}, "server 'a', env.K: it must be a text"),
        ({"a": {"command": " "}}, "server 'a', command: it is empty"),
        ({"a": {"url": "wiki.example"}}, "server 'a', url: it must be an address such as https://example.com/mcp"),
        (
            {"a": {"command": "x", "[x](y)\n" + "z" * 99: 1}},
            f"server 'a', ?x??y??{'z' * 33}: there is no such key here",
        ),
        ({"a": {"url": "https://x", "headers": {"A": "b\nc"}}}, "server 'a', headers.A: a header is plain"),
        ({"a": {"url": "https://x", "auth": "basic"}}, "server 'a', auth: it must be oauth"),
        ({"a": {"command": "x", "auth": "oauth"}}, "server 'a', auth: there is no such key here"),
        ({"a": {"url": "https://x", "type": "sse"}}, "server 'a', type: it must be stdio, with a command, or http"),
        (
            {"a": {"command": "${NO_SUCH}"}},
            "server 'a', command: the environment has no NO_SUCH: set it, here or in .env",
        ),
        ({"a": {"command": "${no such}"}}, "server 'a', command: a variable is written ${NAME}"),
        ({"a b": {"command": "x"}, "a_b": {"command": "x"}}, "'a b' and 'a_b' would both be called a_b: rename one"),
        ({"…": {"command": "x"}}, "server '…': its name must be 1 to 24 letters"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(tmp_path: Path, servers: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_file(write(tmp_path, {"mcpServers": servers}), {})
    assert says in str(caught.value)
    assert "mcp.json: " in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"mcpServers": {"a": }}', "mcp.json is no JSON: see line 1, column"),
        ("[]", 'mcp.json has no servers: it must be {"mcpServers": '),
        ("[" * 100_000, "mcp.json is no JSON"),
    ],
)
def test_a_file_that_is_no_list_of_servers_says_so(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(SettingsError, match=r"mcp\.json") as caught:
        read_file(write(tmp_path, content))
    assert says in str(caught.value)


def test_a_file_that_is_not_there_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.json cannot be read: it is not there; MCP_CONFIG names the file"):
        read_file(tmp_path / "none.json")


def test_no_value_of_a_file_stands_in_an_error() -> None:
    with pytest.raises(SettingsError) as caught:
        read_servers({"a": {"url": "hunter2-is-secret", "headers": {"X": "also-secret"}}}, {})
    assert "secret" not in str(caught.value)


def test_what_looks_like_a_secret_is_erased_and_plain_words_and_paths_stay() -> None:
    environment = {
        "HOME": "/home/nobody-at-all",
        "WIKI_TOKEN": "wiki-t0ken",
        "MINE": "by-its-place",
        "PLACE": "seaside",
    }
    plain = {"LOG_LEVEL": "verbosely", "WHERE": "${PLACE}", "AUTH_HOME": "${HOME}", "GIT_AUTHOR_NAME": "Somebody Else"}
    read_servers(
        {
            "a": {
                "command": "x",
                "args": ["${HOME}/papers", "${REGION_KEY:-europe}", "--token=${WIKI_TOKEN}"],
                "env": {"API_KEY": "${MINE}", "clientSecret": "as-it-stands", **plain},
            },
            "b": {"url": "https://x", "headers": {"X-Me": "Scheme in-a-header", "X-Region": "${REGION:-europe}"}},
        },
        environment,
    )
    stays = "/home/nobody-at-all/papers europe verbosely seaside Somebody Else"
    assert redact(stays) == stays
    for secret in ("wiki-t0ken", "by-its-place", "as-it-stands", "in-a-header"):
        assert redact(f"a {secret} b") == "a [secret] b"


def test_passwords_in_addresses_are_erased_whatever_they_are_called() -> None:
    env = {
        "DATABASE_URL": "postgres://bot:hunter22@db.example/bot?sslmode=on",
        "BROKER": "${WHERE}",
        "DSN": "host=db user=bot password=libpq-w0rd",
        "ODD": "mysql://bot:sl/ash-w@rd@db.example/bot",
        "TWO": "redis://:first-one@a,redis://:second-one@b",
    }
    where = {"WHERE": "amqp://bot:perc%40ent@mq.example/"}
    args = ["--repo", "https://t0ken-without-a-name@git.example/x.git", "ssh://deploy@git.example/y.git"]
    read_servers(
        {"a": {"command": "x", "args": args, "env": env}, "b": {"url": "http://me:in-a-url@x.example/mcp"}}, where
    )
    for secret in ("hunter22", "libpq-w0rd", "sl/ash-w@rd", "first-one", "second-one", "perc%40ent", "perc@ent"):
        assert redact(f"a {secret} b") == "a [secret] b"
    for secret in ("t0ken-without-a-name", "in-a-url"):
        assert redact(f"a {secret} b") == "a [secret] b"
    assert redact("db.example deploy git.example bot") == "db.example deploy git.example bot"


def test_values_that_are_made_to_be_slow_are_looked_through_in_no_time() -> None:
    for hostile in ("://" * 100_000, "://a:" * 60_000, "@" * 300_000, "password=" * 40_000, "://" + ":@" * 150_000):
        assert sum(map(len, passwords_in(hostile))) < 5_000_000
