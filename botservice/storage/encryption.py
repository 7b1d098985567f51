"""Encrypting what must not be readable in a copy of the database, such as tokens."""

import base64

from botservice.core.errors import SettingsError, StorageError
from botservice.core.policies import SHORTEST_ENCRYPTION_KEY

_INFO = b"botservice encryption 1"


class Cipher:
    """Encrypts with the first key and decrypts with any, so that keys can be changed."""

    def __init__(self, keys: str) -> None:
        """Take the keys.

        Args:
            keys: One or more, with commas between them; each a random text of 32 characters or more.

        Raises:
            SettingsError: there is none, or one is too short.
        """
        from cryptography.fernet import Fernet, MultiFernet

        each = [key.strip() for key in keys.split(",") if key.strip()]
        if not each or any(len(key) < SHORTEST_ENCRYPTION_KEY for key in each):
            raise SettingsError(
                f"ENCRYPTION_KEY must be a random text of {SHORTEST_ENCRYPTION_KEY} characters or more, such as "
                '`python -c "import secrets; print(secrets.token_urlsafe(32))"` prints'
            )
        self._fernet = MultiFernet([Fernet(_derive(key)) for key in each])

    def encrypt(self, data: bytes) -> bytes:
        """Return data encrypted and authenticated: only the key opens it, and a change does not go unnoticed."""
        return self._fernet.encrypt(data)

    def decrypt(self, data: bytes) -> bytes:
        """Return what was encrypted.

        Raises:
            StorageError: it was encrypted with another key, or changed since.
        """
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(data)
        except InvalidToken as error:
            raise StorageError("it cannot be decrypted: is ENCRYPTION_KEY the one that it was stored with?") from error


def _derive(key: str) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_INFO).derive(key.encode())
    return base64.urlsafe_b64encode(derived)
