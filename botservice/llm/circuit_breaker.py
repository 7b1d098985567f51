"""When a model that failed is asked again: pure state, the time is passed in."""

from typing import Final

LONGEST_PAUSE_SECONDS: Final = 600.0


class Circuit:
    """Keeps calls away from a model that failed, and lets one call try it once its pause is over.

    A call that began before the model failed, or before it came back, says nothing of it any more. So many that fail
    at once are one failure.

    Attributes:
        resumes_at: When the pause is over, in seconds of the caller's clock; None while the model works.
    """

    def __init__(self) -> None:
        self.resumes_at: float | None = None
        self._failures = 0
        self._is_tried = False
        self._era = 0

    def admits(self, now: float) -> bool:
        """Return whether a call is welcome: each while the model works, and one alone once its pause is over."""
        return self.resumes_at is None or (now >= self.resumes_at and not self._is_tried)

    def begin(self) -> int:
        """Take note that a call begins; return what is handed in when it ends."""
        self._is_tried = self.resumes_at is not None
        return self._era

    def let_go(self, era: int) -> None:
        """Take note that a call ended without a word about the model: it was stopped, or wrong by itself."""
        if era == self._era:
            self._is_tried = False

    def succeed(self, era: int) -> bool:
        """Take note that a call was answered; return whether the model is back by that."""
        if era != self._era or self.resumes_at is None:
            return False
        self._close()
        return True

    def fail(self, era: int, now: float, *, first_pause_seconds: float, least_seconds: float = 0.0) -> float | None:
        """Take note that a call failed; return how long the pause is that begins by that, None if none does.

        Args:
            first_pause_seconds: The pause after a first failure; after each further one it is twice as long.
            least_seconds: The shortest pause that makes sense now.
        """
        self.let_go(era)
        if era != self._era or (self.resumes_at is not None and now < self.resumes_at):
            return None
        pause = min(LONGEST_PAUSE_SECONDS, max(first_pause_seconds * 2.0 ** min(self._failures, 20), least_seconds))
        self._failures += 1
        self._era += 1
        self.resumes_at = now + pause
        return pause

    def _close(self) -> None:
        self.resumes_at = None
        self._failures = 0
        self._is_tried = False
        self._era += 1
