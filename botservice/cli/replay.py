"""The command that shows past turns, and asks one of them again."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from botservice.cli.console import (
    AppOption,
    MaybeContextArgument,
    load_settings,
    open_storage,
    quiet_service,
    run,
    with_storage,
)
from botservice.cli.turns import MOST_ID
from botservice.core.errors import BotServiceError

if TYPE_CHECKING:
    from botservice.devtools.replayed_answers import Changes, Comparison
    from botservice.storage.database import Storage

_CHANGING = "--prompt, --without, --messages, --model, --call and --show-prompt"


TurnOption = Annotated[int | None, typer.Option(max=MOST_ID, help="One turn only, by its number.")]
_Without = Annotated[
    list[str] | None,
    typer.Option(metavar="PART", help="With --again: leave out notes, window, earlier, person, waiting or found."),
]
_Messages = Annotated[Path | None, typer.Option(metavar="FILE", help="With --again: a whole prompt, as JSON.")]
_Prompt = Annotated[Path | None, typer.Option(metavar="FILE", help="With --again: other instructions for the agent.")]
_Model = Annotated[str | None, typer.Option(metavar="NAME", help="With --again: another model.")]
_Call = Annotated[int | None, typer.Option(min=1, help="With --again: start with this model call.")]
_Again = Annotated[bool, typer.Option("--again", help="Ask the turn's question again, with tools from the record.")]
_Shows = Annotated[
    bool, typer.Option("--show-prompt", help="With --again: print the prompt as JSON and call no model.")
]


def replay(  # noqa: PLR0913 - each is an option of the command
    context: MaybeContextArgument = None,
    *,
    turn: TurnOption = None,
    last: Annotated[
        bool, typer.Option("--last", help="The newest turn; without CONTEXT, of all conversations.")
    ] = False,
    failed: Annotated[bool, typer.Option("--failed", help="The newest turn that failed.")] = False,
    detailed: Annotated[bool, typer.Option("--detailed", help="Everything, with the prompts.")] = False,
    again: _Again = False,
    model: _Model = None,
    prompt: _Prompt = None,
    without: _Without = None,
    messages: _Messages = None,
    call: _Call = None,
    show_prompt: _Shows = False,
    app: AppOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The steps, or both answers, as JSON.")] = False,
) -> None:
    """Show questions, searches, tool calls and answers of a conversation; with --again, ask again."""
    is_changed = any(each is not None for each in (model, prompt, without, messages, call)) or show_prompt
    if is_changed and not again:
        raise BotServiceError(f"{_CHANGING} go with --again")
    if again:
        changes = _read_changes(prompt, without or [], messages)
        compared = run(_ask((context, turn, last, failed), changes, model, call or 1, app, show_prompt))
        _show_comparison(compared, as_json=as_json)
        return

    async def read(storage: "Storage") -> Any:
        from botservice.devtools.conversations import read_turns

        context_id, turn_id = await _find(storage, context, turn, is_last=last, is_failed=failed)
        return await read_turns(storage, context_id, turn_id)

    _show_turns(with_storage(read), detailed=detailed, as_json=as_json)


def _show_turns(found: Any, *, detailed: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([each.as_dict() for each in found], indent=2))
        return
    from botservice.conversation.replay import show
    from botservice.devtools.reports import render_turns

    show(render_turns(found, detailed=detailed))


async def _find(
    storage: "Storage", context: str | None, turn: int | None, *, is_last: bool, is_failed: bool
) -> tuple[int, int | None]:
    """Return which conversation is meant, and which turn of it, if one is."""
    from botservice.cli.contexts import find_context_id
    from botservice.turns.finding_queries import find_newest_turn

    if (turn is not None) + is_last + is_failed > 1:
        raise BotServiceError("say one of --turn, --last and --failed")
    context_id = None if context is None else await find_context_id(storage, context)
    if is_last or is_failed:
        return await find_newest_turn(storage, context_id, is_failed=is_failed)
    if context_id is None:
        raise BotServiceError("say which conversation: CONTEXT, as `botservice contexts` lists it, or --last, --failed")
    return context_id, turn


def _read_changes(prompt: Path | None, without: list[str], messages: Path | None) -> "Changes":
    from botservice.devtools.replayed_answers import Changes, read_messages

    given = None if messages is None else read_messages(read_text(messages))
    return Changes(None if prompt is None else read_text(prompt).strip(), tuple(without), given)


def read_text(path: Path) -> str:
    """Return what a file says."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise BotServiceError(f"{path} cannot be read: {reason}") from None


async def _ask(
    which: tuple[str | None, int | None, bool, bool],
    changes: "Changes",
    model: str | None,
    call: int,
    app: str | None,
    is_shown_only: bool,  # noqa: FBT001 - the option of the same name
) -> "Comparison | list[Any]":
    """Ask a turn again and return the comparison, or return the prompt that would be sent."""
    from botservice.devtools.replaying import ask_again, model_named, prompt_again
    from botservice.factories import govern

    settings = load_settings()
    service = quiet_service(settings, app)
    async with open_storage(settings) as storage, service, model_named(settings, model) as llm:
        context, turn, is_last, is_failed = which
        context_id, turn_id = await _find(storage, context, turn, is_last=is_last, is_failed=is_failed)
        if turn_id is None:
            raise BotServiceError("say which turn to ask again: --turn N, --last or --failed")
        if is_shown_only:
            return list(await prompt_again(service, context_id, turn_id, changes, call=call, storage=storage))
        govern(settings, service)
        return await ask_again(service, context_id, turn_id, changes, call=call, llm=llm, storage=storage)


def _show_comparison(compared: "Comparison | list[Any]", *, as_json: bool) -> None:
    if isinstance(compared, list):
        typer.echo(json.dumps(compared, indent=2, ensure_ascii=False))
        return
    if as_json:
        typer.echo(json.dumps(compared.as_dict(), indent=2))
    else:
        from botservice.conversation.replay import show
        from botservice.devtools.reports import render_comparison

        show(render_comparison(compared))
    if compared.again.error is not None:
        raise typer.Exit(1)
