"""Days, months and minutes, by the clock of UTC."""

from datetime import UTC, datetime, timedelta

from botservice.core.policies import Period


def period_start(period: Period, now: datetime) -> datetime:
    """Return when the period that now lies in began."""
    start = now.astimezone(UTC).replace(second=0, microsecond=0)
    if period is Period.MINUTE:
        return start
    start = start.replace(hour=0, minute=0)
    return start if period is Period.DAY else start.replace(day=1)


def period_end(period: Period, now: datetime) -> datetime:
    """Return when the next period begins."""
    start = period_start(period, now)
    if period is Period.MINUTE:
        return start + timedelta(minutes=1)
    if period is Period.DAY:
        return start + timedelta(days=1)
    return (start + timedelta(days=32)).replace(day=1)
