"""What the pages work on once the service has started: its storage and its inbox, or the refusal that tells why not."""

from starlette.exceptions import HTTPException

from botservice.people.access import Access as PeopleAccess
from botservice.storage.database import Storage
from botservice.turns.inbox import Inbox


class Backend:
    """The storage and the inbox of a service that has started."""

    def __init__(self) -> None:
        self.opened: Storage | None = None
        self.people = PeopleAccess()
        self._inbox: Inbox | None = None

    def connect(self, inbox: Inbox, storage: Storage) -> None:
        """Work on these from now on."""
        self.opened, self.people, self._inbox = storage, inbox.access, inbox

    def disconnect(self) -> None:
        """Accept nothing more; what is stored can still be read."""
        self._inbox = None

    @property
    def storage(self) -> Storage:
        """The storage, for a request that cannot do without."""
        if self.opened is None:
            raise HTTPException(503, "The service has not started yet.")
        return self.opened

    @property
    def inbox(self) -> Inbox:
        """The inbox, for a request that cannot do without."""
        if self._inbox is None:
            raise HTTPException(503, "The service is about to stop, or has not started yet.")
        return self._inbox
