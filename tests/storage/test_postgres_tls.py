"""TLS to a real Postgres: its certificate is checked, and who is not trusted is told apart from who is not there."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from sqlalchemy import text
from standins.postgres_debian import debian_postgres, needs_debian_postgres

from botservice import Storage
from botservice.core.errors import StorageUnavailable

pytestmark = [pytest.mark.slow, needs_debian_postgres]


@dataclass(frozen=True)
class Server:
    """A server that speaks TLS, and the file with the authority that has signed its certificate."""

    port: int
    authority: Path

    def url(self, query: str, host: str = "localhost") -> str:
        return f"postgresql://postgres@{host}:{self.port}/postgres?{query}"


def made(subject: str, key: ec.EllipticCurvePrivateKey, issuer: str, by: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a certificate: an authority's own where subject and issuer are one, else that of a server."""
    now, is_authority = datetime.now(UTC), subject == issuer
    names = [x509.DNSName("localhost"), x509.DNSName("other.example")][: 2 if is_authority else 1]
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return builder.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    of_authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = tmp_path_factory.mktemp("authority") / "ca.pem"
    authority.write_bytes(made("An authority", of_authority, "An authority", of_authority))
    secret = own.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files = [("server.crt", made("localhost", own, "An authority", of_authority)), ("server.key", secret)]
    files.append(("pg_hba.conf", b"local all all trust\nhostssl all all 127.0.0.1/32 trust\n"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with debian_postgres("botservice-tls-", files=files, port=str(port), ssl="on"):
        yield Server(port, authority)


async def speaks_tls(url: str) -> bool:
    async with Storage.open(url, migrate=True) as storage:
        query = text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        return bool(await storage.read(lambda connection: connection.execute(query).scalar_one()))


async def test_a_certificate_of_an_authority_that_is_named_is_trusted(server: Server) -> None:
    assert await speaks_tls(server.url(f"sslmode=verify-full&sslrootcert={server.authority}"))


@pytest.mark.parametrize(
    "query", ["sslmode=verify-full", "sslrootcert=system", "sslmode=verify-full&sslrootcert=system"]
)
async def test_an_authority_that_nobody_knows_is_refused(server: Server, query: str) -> None:
    with pytest.raises(StorageUnavailable, match="certificate verify failed"):
        await speaks_tls(server.url(query))


async def test_where_nothing_is_named_the_authorities_of_certifi_are_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certifi, "where", lambda: str(server.authority))
    assert await speaks_tls(server.url("sslmode=verify-full"))
    assert await speaks_tls(server.url("sslrootcert=system"))


async def test_the_authorities_of_ssl_cert_file_go_before_those(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
    assert await speaks_tls(server.url("sslmode=verify-full"))


async def test_a_certificate_for_another_name_is_refused(server: Server) -> None:
    named = f"sslmode=verify-full&sslrootcert={server.authority}&hostaddr=127.0.0.1"
    with pytest.raises(StorageUnavailable, match=r"does not match host name .?other\.example"):
        await speaks_tls(server.url(named, host="other.example"))


async def test_a_connection_without_tls_is_refused_by_the_server(server: Server) -> None:
    with pytest.raises(StorageUnavailable, match="no encryption"):
        await speaks_tls(server.url("sslmode=disable"))
