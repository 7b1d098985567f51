"""What reads the files that people send, as the settings say."""

from botservice.config.settings import Settings
from botservice.factories import build_transcriber
from transports.files.documents import DocumentReaders


def build_reading(settings: Settings) -> DocumentReaders:
    """Return what can be read of the files that people send; speech only where a model for it is set."""
    return DocumentReaders.of_installation(build_transcriber(settings))
