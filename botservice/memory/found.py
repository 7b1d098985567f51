"""How remembered messages stand in a prompt: as records between two marks, told from everything else."""

FOUND_START = "<memory>"
FOUND_END = "</memory>"


def found_records(content: str) -> str:
    """Return what stands between the marks; all of content where there are none."""
    _, start, records = content.partition(f"{FOUND_START}\n")
    return records.rpartition(f"\n{FOUND_END}")[0] if start else content
