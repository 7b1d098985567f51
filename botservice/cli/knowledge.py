"""`botservice knowledge`: the documents that the bot may quote. The commands work while the service runs."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from botservice.cli.console import JsonLinesOption, counted, load_settings, open_storage, printable, run, with_storage
from botservice.core.errors import KnowledgeError

if TYPE_CHECKING:
    from botservice.knowledge.indexer import ReadingReport
    from botservice.knowledge.queries import KnowledgeSource, SourceCounts
    from botservice.storage.database import Connection

knowledge_cli = typer.Typer(help="Add, list and remove the documents that the bot may quote.", no_args_is_help=True)


@knowledge_cli.command()
def add(
    location: Annotated[str, typer.Argument(metavar="FOLDER|FILE|URL", help="What to read.")],
    *,
    name: Annotated[str | None, typer.Option(help="What it is called; by default the name of the folder.")] = None,
    readers: Annotated[
        str, typer.Option("--for", metavar="CHATS", help="Who may read it: all, or chats with commas. Default: owners.")
    ] = "",
) -> None:
    """Read documents, or read them again, so that answers can quote them."""
    from botservice.knowledge.indexer import parse_readers

    may_read = parse_readers(readers)
    source, report = run(_add(location, name, may_read))
    _show(source, report)


async def _add(location: str, name: str | None, readers: tuple[str, ...]) -> "tuple[KnowledgeSource, ReadingReport]":
    from botservice.factories import build_embedder
    from botservice.knowledge.indexer import KnowledgeIndexer

    settings = load_settings()
    embedder = build_embedder(settings)
    async with open_storage(settings) as storage:
        indexer = KnowledgeIndexer(storage, embedder)
        added = await indexer.add(location, name=name, readers=readers)
        await indexer.embed()
    if embedder is not None:
        await embedder.close()
    return added


@knowledge_cli.command(name="list")
def list_all(*, as_json: JsonLinesOption = False) -> None:
    """List the sources, who may read each, and which documents could not be read."""
    from botservice.knowledge.queries import StoredDocument, count_source, list_documents, list_sources

    def read(connection: "Connection") -> "list[tuple[KnowledgeSource, SourceCounts, list[StoredDocument]]]":
        return [
            (each, count_source(connection, each.id), list_documents(connection, each.id))
            for each in list_sources(connection)
        ]

    found = with_storage(lambda storage: storage.read(read))
    if not found and not as_json:
        typer.echo("No documents. Add some: botservice knowledge add FOLDER --for all")
    for source, counts, documents in found:
        unread = {each.path: each.problem for each in documents if each.problem}
        if as_json:
            typer.echo(
                json.dumps(
                    {
                        "name": source.name,
                        "location": source.location,
                        "for": list(source.readers),
                        "documents": counts.documents,
                        "passages": counts.passages,
                        "unread": unread,
                        "read_at": None if source.read_at is None else source.read_at.isoformat(),
                    }
                )
            )
            continue
        readers = ", ".join(source.readers) or "owners alone"
        size = f"{counted(counts.documents, 'document')}, {counted(counts.passages, 'passage')}"
        typer.echo(f"{printable(source.name)}: {size}, for {readers} ({printable(source.location)})")
        for path, problem in unread.items():
            typer.echo(f"  cannot read {printable(path)}: {printable(problem or '')}")


@knowledge_cli.command()
def remove(name: Annotated[str, typer.Argument(metavar="NAME", help="As `knowledge list` shows it.")]) -> None:
    """Remove a source. Its files and past answers stay."""
    from botservice.knowledge.queries import delete_source

    if not with_storage(lambda storage: storage.write(lambda connection: delete_source(connection, name))):
        raise KnowledgeError(f"there is no source {name!r}: `botservice knowledge list` shows them")
    typer.echo(f"{printable(name)} is removed")


@knowledge_cli.command()
def refresh(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One source; all by default.")] = None,
) -> None:
    """Read again what has changed."""
    for source, report in run(_refresh(name)):
        _show(source, report)


async def _refresh(name: str | None) -> "list[tuple[KnowledgeSource, ReadingReport]]":
    from botservice.factories import build_embedder
    from botservice.knowledge.indexer import KnowledgeIndexer
    from botservice.knowledge.queries import list_sources

    settings = load_settings()
    embedder = build_embedder(settings)
    async with open_storage(settings) as storage:
        sources = [each for each in await storage.read(list_sources) if name in (None, each.name)]
        if name is not None and not sources:
            raise KnowledgeError(f"there is no source {name!r}: `botservice knowledge list` shows them")
        indexer, done, failed = KnowledgeIndexer(storage, embedder), [], []
        for source in sources:
            try:
                done.append((source, await indexer.refresh(source)))
            except KnowledgeError as error:
                failed.append(str(error))
        await indexer.embed()
    if embedder is not None:
        await embedder.close()
    for problem in failed:
        typer.echo(problem, err=True)
    if failed:
        raise KnowledgeError(f"{counted(len(failed), 'source')} could not be read")
    return done


def _show(source: "KnowledgeSource", report: "ReadingReport") -> None:
    done = {"added": report.added, "changed": report.changed, "unchanged": report.unchanged, "removed": report.removed}
    told = ", ".join(f"{count} {what}" for what, count in done.items() if count) or "nothing to read"
    typer.echo(f"{printable(source.name)}: {told}")
    for path, problem in report.problems:
        typer.echo(f"  cannot read {printable(path)}: {printable(problem)}")
